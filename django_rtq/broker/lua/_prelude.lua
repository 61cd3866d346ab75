-- _prelude: what every script starts with.

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

-- "+500" is from now on, "500" a moment; "" is none.
local function moment(text, now)
  if string.sub(text, 1, 1) == "+" then return now + tonumber(text) end
  return tonumber(text)
end

-- The header of a record. What no version of this package wrote is treated as a job of nobody that may not crash.
local function header(record)
  local band, max_crashes, client = string.match(record, "^(%-?%d+%+?) (%d+) %d+ %d+ ([^\n]*)\n")
  return band or "0", client or "", tonumber(max_crashes or 0)
end

-- One more, or n more, in this minute's counters. The first of each counter sees to it that they are forgotten.
local function count(stats, now, field, n)
  local key = stats .. string.format("%.0f", math.floor(now / 60000))
  if redis.call("HINCRBY", key, field, n) == tonumber(n) then redis.call("EXPIRE", key, STATS_SECONDS) end
end

-- Sort a list in which every `step`-th entry is an id: the places of those that the worker holds, and the stale ids.
local function held_by(running, list, step)
  local ids, mine, stale, n, m = {}, {}, {}, 0, 0 -- counted, as neither # nor ipairs is cheap
  for i = 1, #list, step do
    n = n + 1
    ids[n] = list[i]
  end
  local held = n > 0 and redis.call("HMGET", running, unpack(ids))
  for i = 1, n do
    if held[i] then
      m = m + 1
      mine[m] = (i - 1) * step + 1
    else
      stale[#stale + 1] = ids[i]
    end
  end
  return mine, stale
end
