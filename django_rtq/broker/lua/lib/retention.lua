-- retention: how long ids and outcomes of finished jobs are kept. `finished` says when trim looks at an id next: then it
-- is deleted, or kept for as long as its outcome.

-- An id is remembered for at least TOMBSTONE_MS after the end of its job, so that it is recognised when it is sent again.
-- MOST_IDS only bounds memory: it is far above what two minutes bring.
local TOMBSTONE_MS, MOST_IDS, AT_ONCE, TEXTS_AT_ONCE = 120000, 1000000, 1000, 100

-- The score in `finished` of a job that has or had an outcome: half a ms tells it from jobs that had none.
local function next_check_at(moment)
  return string.format("%.1f", moment + 0.5)
end

-- Go through ids of `finished`. An outcome that is kept for longer than `moment` stays, and its id gets that time; all
-- others are deleted. At most `most` outcomes are read, because they may be long. Returns how many ids were deleted, and
-- how many were skipped.
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

-- If there are too many ids, go through the lowest ones early.
local function limit_ids(q)
  local over = math.min(redis.call("ZCARD", q.finished) - MOST_IDS, AT_ONCE)
  if over <= 0 then return end
  local last = redis.call("ZRANGE", q.finished, over - 1, over - 1, "WITHSCORES")[2]
  prune_ids(q, redis.call("ZRANGE", q.finished, 0, over - 1), tonumber(last), TEXTS_AT_ONCE)
end

-- Drop the outcomes of the jobs that finished first. Ids younger than TOMBSTONE_MS stay until trim looks at them; older
-- ones are deleted as well. By rank, which costs a third of ZREM.
local function drop_oldest_outcomes(q, number, now)
  local ids = redis.call("ZRANGE", q.result_times, 0, number - 1)
  local long_over = redis.call("ZRANGEBYSCORE", q.result_times, "-inf", now - TOMBSTONE_MS, "LIMIT", 0, number)
  redis.call("HDEL", q.results, unpack(ids))
  redis.call("ZREMRANGEBYRANK", q.result_times, 0, number - 1)
  if #long_over > 0 then redis.call("ZREM", q.finished, unpack(long_over)) end
end
