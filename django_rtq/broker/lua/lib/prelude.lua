-- prelude: what every script starts with: the time, the header of a record, counters.

local HOUR_MS, STATS_SECONDS = 3600000, 172800

-- Time in tenths of a ms while the server's clock is behind `high`, because it was put back. From the anchor on, which
-- is a time and what the clock showed then, time goes on at nine tenths of its speed; at `high` the two are the same
-- again. A clock that was put back by an hour or more was wrong before, and is believed.
local function slow_time(sweep, clock, high)
  local tenths, at = string.match(redis.call("HGET", sweep, "anchor") or "", "^(%d+) (%d+)$")
  tenths = (tenths or 10 * high) + 9 * math.max(0, clock - (at or clock))
  local ahead = tenths - 10 * clock
  return (ahead > 0 and ahead < 10 * HOUR_MS) and tenths or 10 * clock
end

-- The time in ms, in tenths of a ms, and what the server's clock shows, ms: mostly the same as the time.
local function now_ms(sweep)
  local time = redis.call("TIME")
  local clock = time[1] * 1000 + math.floor(time[2] / 1000)
  local high = tonumber(redis.call("HGET", sweep, "high") or 0)
  if clock >= high then return clock, 10 * clock, clock end
  local tenths = slow_time(sweep, clock, high)
  return math.floor(tenths / 10), tenths, clock
end

-- The header of a record. What no version of this package wrote is treated as a job of nobody that may not crash.
local function read_header(record)
  local band, max_crashes, client = string.match(record, "^(%-?%d+%+?) (%d+) %d+ %d+ ([^\n]*)\n")
  return band or "0", client or "", tonumber(max_crashes or 0)
end

-- One more, or n more, in this minute's counters. The first of each counter sees to it that they are forgotten.
local function count(stats, now, field, n)
  local key = stats .. string.format("%.0f", math.floor(now / 60000))
  if redis.call("HINCRBY", key, field, n) == tonumber(n) then redis.call("EXPIRE", key, STATS_SECONDS) end
end
