-- retention: how long outcomes are kept.
--
-- An id is added to `recent_results`, or to the indexes `result_times` and `result_expiry`, before its outcome is written, and
-- removed after it is deleted: so a torn log leaves no outcome outside of them.
-- created when first called

local RECENT_MS, AT_ONCE, TEXTS_AT_ONCE = 120000, 1000, 100

-- Drop the outcomes of the jobs that finished first, so many at most. Nothing is as old as what is in `result_times`.
local function drop_oldest_outcomes(q, number)
  number = math.min(number, AT_ONCE)
  local ids = redis.call("ZRANGE", q.result_times, 0, number - 1)
  local old = #ids
  if old > 0 then
    redis.call("HDEL", q.results, unpack(ids))
    redis.call("ZREM", q.result_times, unpack(ids))
    redis.call("ZREM", q.result_expiry, unpack(ids))
  end
  if old == number then return end
  ids = redis.call("LRANGE", q.recent_results, 0, number - old - 1)
  if #ids == 0 then return end
  redis.call("HDEL", q.results, unpack(ids))
  redis.call("LTRIM", q.recent_results, #ids, -1)
end

-- Returns when a job finished, and until when its outcome is kept, ms; nil for an outcome that is missing or damaged.
local function read_times(q, id)
  local finished_at, keep_ms = string.match(redis.call("HGET", q.results, id) or "", "^(%d+) (%d+) ")
  if finished_at then return tonumber(finished_at), finished_at + keep_ms end
end

-- Move the ids of jobs that are no longer recent into the indexes, and delete outcomes that have expired. Reads at most
-- TEXTS_AT_ONCE outcomes, because they may be long. Returns how many were deleted, and whether there may be more to do.
local function expire_outcomes(q, now)
  local gone = redis.call("ZRANGEBYSCORE", q.result_expiry, "-inf", now, "LIMIT", 0, AT_ONCE)
  local is_cut, times, expiries, n = #gone == AT_ONCE, {}, {}, 0
  for _, id in ipairs(redis.call("LRANGE", q.recent_results, 0, TEXTS_AT_ONCE - 1)) do
    local finished_at, until_ms = read_times(q, id)
    if finished_at and finished_at <= now and now - finished_at < RECENT_MS then break end
    n = n + 1
    if finished_at and until_ms > now then
      times[#times + 1], times[#times + 2] = finished_at, id
      expiries[#expiries + 1], expiries[#expiries + 2] = until_ms, id
    else
      gone[#gone + 1] = id
    end
  end
  if #times > 0 then
    redis.call("ZADD", q.result_times, unpack(times))
    redis.call("ZADD", q.result_expiry, unpack(expiries))
  end
  local deleted = #gone > 0 and redis.call("HDEL", q.results, unpack(gone)) or 0
  if n > 0 then redis.call("LTRIM", q.recent_results, n, -1) end
  if #gone > 0 then
    redis.call("ZREM", q.result_times, unpack(gone))
    redis.call("ZREM", q.result_expiry, unpack(gone))
  end
  return deleted, is_cut or n == TEXTS_AT_ONCE
end
