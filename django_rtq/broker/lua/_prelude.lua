-- _prelude: what every script starts with.

local HOUR_MS, STATS_SECONDS = 3600000, 172800

-- The server's time in ms, never below the highest that was seen. A clock that was put back by more than
-- an hour was wrong before, and is believed: else leases and delays would stand still until it catches up.
local function now_ms(sweep)
  local time = redis.call("TIME")
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local high = tonumber(redis.call("HGET", sweep, "high") or 0)
  return (high > now and high - now < HOUR_MS) and high or now
end

-- Somebody is alive. After a silence of half a lease nobody could renew: Redis was away, not the workers,
-- so for one lease nothing is reclaimed.
local function contact(sweep, now, lease_ms)
  local last = tonumber(redis.call("HGET", sweep, "contact") or now)
  if now - last > lease_ms / 2 then redis.call("HSET", sweep, "hold", now + lease_ms) end
  redis.call("HSET", sweep, "contact", now, "high", now)
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
  local ids, mine, stale = {}, {}, {}
  for i = 1, #list, step do ids[#ids + 1] = list[i] end
  if #ids == 0 then return mine, stale end
  for i, held in ipairs(redis.call("HMGET", running, unpack(ids))) do
    if held then mine[#mine + 1] = (i - 1) * step + 1 else stale[#stale + 1] = ids[i] end
  end
  return mine, stale
end
