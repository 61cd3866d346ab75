-- runners: which worker runs a job, in a queue of many workers. In a queue of few, their processing lists are read.
--
-- The hash `runners` names the worker of each running job. While it exists, claims write it and ends of runs remove from
-- it. Entries of jobs that ran before are added by heartbeats, some workers in each; the field "" is the last one that
-- was added, then "ready". A worker of a former version does not write it: while there is one, or the entries are not
-- complete, all processing lists are read. Former versions also leave entries behind, and so does a torn log: readers look
-- whether the worker holds the job, and heartbeats remove some of those that they meet by chance.

local MANY_WORKERS, FEW_WORKERS = 100, 50 -- from more than so many on there are entries; with so few they are deleted

-- Whether `entry`, the field "", says that all running jobs are in `runners`, and no worker is of a former version.
local function is_indexed(q, entry)
  return entry == "ready" and redis.call("ZCOUNT", q.signed_on, 0, "+inf") == 0
end

-- How many jobs run.
local function count_running(q)
  if is_indexed(q, redis.call("HGET", q.runners, "")) then return redis.call("HLEN", q.runners) - 1 end
  local running = 0
  for _, worker in ipairs(redis.call("ZRANGE", q.workers, 0, -1)) do
    running = running + redis.call("HLEN", q.running_of .. worker)
  end
  return running
end

-- Returns the worker that runs a job, its attempt and claim time, and the end of its lease; nil if none does. If a torn log
-- has left the job with two workers, the one whose lease ends later.
local function find_runner(q, id)
  local entry, worker = unpack(redis.call("HMGET", q.runners, "", id))
  if is_indexed(q, entry) then
    local held = worker and redis.call("HGET", q.running_of .. worker, id)
    local lease = held and redis.call("ZSCORE", q.workers, worker)
    if lease then return worker, held, lease end
    return
  end
  local workers = redis.call("ZREVRANGE", q.workers, 0, -1, "WITHSCORES")
  for i = 1, #workers, 2 do
    local held = redis.call("HGET", q.running_of .. workers[i], id)
    if held then return workers[i], held, workers[i + 1] end
  end
end

-- Add the jobs of some workers that signed on after `last`. Returns the last of them, or "ready".
local function add_runners(q, last, most)
  local workers, at = redis.call("ZRANGEBYSCORE", q.signed_on, "(" .. last, "+inf", "WITHSCORES", "LIMIT", 0, most), "ready"
  if #workers == 2 * most then
    at = workers[#workers]
    for _, worker in ipairs(redis.call("ZRANGEBYSCORE", q.signed_on, at, at)) do
      workers[#workers + 1], workers[#workers + 2] = worker, at
    end
  end
  for w = 1, #workers, 2 do
    for _, id in ipairs(redis.call("HKEYS", q.running_of .. workers[w])) do
      redis.call("HSET", q.runners, id, workers[w])
    end
  end
  return at
end

-- Remove those of some entries whose worker does not hold the job.
local function remove_stale(q, most)
  local entries = redis.call("HRANDFIELD", q.runners, most, "WITHVALUES")
  for i = 1, #entries, 2 do
    local id, worker = entries[i], entries[i + 1]
    if id ~= "" and redis.call("HEXISTS", q.running_of .. worker, id) == 0 then redis.call("HDEL", q.runners, id) end
  end
end

-- Begin with `runners`, go on with it, repair or delete it.
local function tend_runners(q)
  local WORKERS_AT_ONCE, LOOKUPS = 50, 20
  local workers, entry = redis.call("ZCARD", q.signed_on), redis.call("HGET", q.runners, "")
  if not entry and workers <= MANY_WORKERS then return end
  if workers <= FEW_WORKERS or redis.call("ZCOUNT", q.signed_on, 0, "+inf") > 0 then
    redis.call("UNLINK", q.runners)
  elseif entry == "ready" then
    remove_stale(q, LOOKUPS)
  else
    redis.call("HSET", q.runners, "", add_runners(q, entry or "-inf", WORKERS_AT_ONCE))
  end
end
