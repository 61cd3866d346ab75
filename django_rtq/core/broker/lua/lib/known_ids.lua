-- known_ids: ids of jobs that finished lately, so that a job that is sent again runs once.
--
-- An id is kept for at least PERIOD_MS, and for twice that time at most while heartbeats come. Only more than MOST_IDS in a
-- period shorten it, to limit memory.

local PERIOD_MS, MOST_IDS = 120000, 1000000

-- Whether a job finished lately.
local function is_finished(q, id)
  return redis.call("SISMEMBER", q.finished, id) == 1 or redis.call("SISMEMBER", q.finished_before, id) == 1
end

-- Whether a job finished lately, or its outcome is kept.
local function has_ended(q, id)
  return redis.call("HEXISTS", q.results, id) == 1 or is_finished(q, id)
end

-- Whether an id is known: live, finished lately, or still in a lane. A job that was made just now cannot have been
-- cancelled and forgotten before.
local function is_known(q, id, recent)
  return redis.call("HEXISTS", q.jobs, id) == 1 or is_finished(q, id)
    or not recent and redis.call("HEXISTS", q.cancelled_in_lane, id) == 1
end

-- Returns the known ids of these ids, as a set.
local function find_known(q, ids)
  local known, live = {}, redis.call("HMGET", q.jobs, unpack(ids))
  local finished = redis.call("SMISMEMBER", q.finished, unpack(ids))
  local before = redis.call("SMISMEMBER", q.finished_before, unpack(ids))
  local cancelled = redis.call("EXISTS", q.cancelled_in_lane) == 1 and redis.call("HMGET", q.cancelled_in_lane, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    known[id] = live[i] or finished[i] == 1 or before[i] == 1 or cancelled[i] or nil
  end
  return known
end

-- Start a new period if the current one is over. The old ids are deleted by UNLINK, which does not block the server. The time
-- is written first: if the log is torn after it, ids are kept for longer.
local function rotate_ids(q, now)
  local age = now - (redis.call("HGET", q.clock, "rotated") or math.huge)
  if age >= 0 and age < PERIOD_MS and redis.call("SCARD", q.finished) < MOST_IDS then return end
  redis.call("HSET", q.clock, "rotated", now)
  if age < 0 then return end -- this is the first period, or the clock was ahead by hours
  redis.call("UNLINK", q.finished_before, q.no_outcome_before)
  if redis.call("EXISTS", q.finished) == 1 then redis.call("RENAME", q.finished, q.finished_before) end
  if redis.call("EXISTS", q.no_outcome) == 1 then redis.call("RENAME", q.no_outcome, q.no_outcome_before) end
end
