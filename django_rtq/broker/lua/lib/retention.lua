-- retention: how long ids and outcomes of jobs that are over are kept. `finished` says when an id is looked at next: it is
-- forgotten then, or stays for as long as its outcome.

-- An id that is sent again is known for so long after the end of its job, whatever else is forgotten. The number of
-- ids bounds memory only: it is far above what two minutes bring.
local TOMBSTONE_MS, MOST_IDS, AT_ONCE, TEXTS_AT_ONCE = 120000, 1000000, 1000, 100

-- A moment in `finished` of a job that has an outcome, or had one: half a ms tells it from those that had none.
local function next_check_at(moment)
  return string.format("%.1f", moment + 0.5)
end

-- Look through ids of `finished`. An outcome that is to be kept until after `moment` stays, and its id is looked at
-- again then; everything else goes. Texts may be long: no more than `most` are read. Answers how many ids went, and
-- how many were not looked at.
local function prune_ids(q, ids, moment, most)
  if #ids == 0 then return 0, 0 end
  local staying, outcomes, going, read, left = {}, {}, {}, 0, 0
  for i, finished_at in ipairs(redis.call("ZMSCORE", q.result_times, unpack(ids))) do
    if finished_at and read == most then
      left = left + 1
    else
      local text = finished_at and redis.call("HGET", q.results, ids[i])
      local last = finished_at and finished_at + (string.match(text or "", "^(%d+) ") or 0)
      local is_kept, n = last and last > moment, #staying
      if is_kept then staying[n + 1], staying[n + 2] = next_check_at(last), ids[i] else going[#going + 1] = ids[i] end
      if finished_at and not is_kept then outcomes[#outcomes + 1] = ids[i] end
      if finished_at then read = read + 1 end
    end
  end
  if #staying > 0 then redis.call("ZADD", q.finished, unpack(staying)) end
  if #outcomes > 0 then redis.call("HDEL", q.results, unpack(outcomes)) end
  if #outcomes > 0 then redis.call("ZREM", q.result_times, unpack(outcomes)) end
  if #going > 0 then redis.call("ZREM", q.finished, unpack(going)) end
  return #going, left
end

-- When there are too many ids, look through the lowest before their time.
local function limit_ids(q)
  local over = math.min(redis.call("ZCARD", q.finished) - MOST_IDS, AT_ONCE)
  if over <= 0 then return end
  local last = redis.call("ZRANGE", q.finished, over - 1, over - 1, "WITHSCORES")[2]
  prune_ids(q, redis.call("ZRANGE", q.finished, 0, over - 1), tonumber(last), TEXTS_AT_ONCE)
end

-- Drop the outcomes of the jobs that finished first. Their ids stay until they are looked at; where that may be long
-- after their two minutes, they go as well. Outcomes go by rank, which costs a third.
local function drop_oldest_outcomes(q, number, now)
  local ids = redis.call("ZRANGE", q.result_times, 0, number - 1)
  local long_over = redis.call("ZRANGEBYSCORE", q.result_times, "-inf", now - TOMBSTONE_MS, "LIMIT", 0, number)
  redis.call("HDEL", q.results, unpack(ids))
  redis.call("ZREMRANGEBYRANK", q.result_times, 0, number - 1)
  if #long_over > 0 then redis.call("ZREM", q.finished, unpack(long_over)) end
end
