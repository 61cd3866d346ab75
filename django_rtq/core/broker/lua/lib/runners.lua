-- runners: which worker runs a job, in a queue of many workers. In a queue of few, their processing lists are read.
--
-- The hash `runners` names the worker of each running job. While it exists, claims write it before the processing list, and
-- ends of runs remove from it afterwards. The jobs that ran before are added by heartbeats, some workers in each; its field
-- "" is when the last of them signed on, then "ready". From then on each job in a processing list is in it.
-- Until it is ready, all lists are read. Torn logs leave entries too many: readers look whether the worker holds the job, and
-- heartbeats remove those that they meet by chance.

-- With more than MANY_WORKERS there are entries, with FEW_WORKERS they are deleted. A heartbeat adds the jobs of
-- WORKERS_AT_ONCE, or looks after LOOKUPS entries.
local MANY_WORKERS, FEW_WORKERS, WORKERS_AT_ONCE, LOOKUPS = 100, 50, 50, 20

-- How many jobs run.
local function count_running(q)
  if redis.call("HGET", q.runners, "") == "ready" then return redis.call("HLEN", q.runners) - 1 end
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
  if entry == "ready" then
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

-- Note that a worker runs jobs: each `step`-th entry of a list.
local function note_runner(q, worker, list, step)
  local runners, n = {}, 0
  for i = 1, #list, step do
    runners[n + 1], runners[n + 2] = list[i], worker
    n = n + 2
  end
  redis.call("HSET", q.runners, unpack(runners))
end

-- Add the jobs of some workers that signed on after `last`. Returns when the last of them did, or "ready".
local function add_runners(q, last)
  local limit, at = WORKERS_AT_ONCE, "ready"
  local workers = redis.call("ZRANGEBYSCORE", q.signed_on, "(" .. last, "+inf", "WITHSCORES", "LIMIT", 0, limit)
  if #workers == 2 * limit then
    at = workers[#workers]
    for _, worker in ipairs(redis.call("ZRANGEBYSCORE", q.signed_on, at, at)) do
      workers[#workers + 1], workers[#workers + 2] = worker, at
    end
  end
  for w = 1, #workers, 2 do
    local ids = redis.call("HKEYS", q.running_of .. workers[w])
    if #ids > 0 then note_runner(q, workers[w], ids, 1) end
  end
  return at
end

-- Begin with `runners`, go on with it, repair or delete it: remove those of some entries whose worker does not hold the job.
local function tend_runners(q)
  local workers, entry = redis.call("ZCARD", q.signed_on), redis.call("HGET", q.runners, "")
  if workers <= (entry and FEW_WORKERS or MANY_WORKERS) then
    redis.call("UNLINK", q.runners) -- also what a torn log has left of it, without the field ""
  elseif entry == "ready" then
    local entries = redis.call("HRANDFIELD", q.runners, LOOKUPS, "WITHVALUES")
    for i = 1, #entries, 2 do
      local id, worker = entries[i], entries[i + 1]
      if id ~= "" and redis.call("HEXISTS", q.running_of .. worker, id) == 0 then redis.call("HDEL", q.runners, id) end
    end
  else
    redis.call("HSET", q.runners, "", add_runners(q, entry or "-inf"))
  end
end
