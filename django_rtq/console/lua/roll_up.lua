-- roll_up: add up the counters of past minutes by the hour. The sums are kept for longer.
-- uses: prelude
-- ARGV[1] most        hours in this call, at most 12
--
-- returns how many hours are left
-- sent twice: the next hours, if any are left; an hour is summed again only after the clock was put back, from the same
--             minutes

local q, most = named(), tonumber(ARGV[1])
local HOURS_SECONDS = 2678400
local present = math.floor(now_ms(q.clock) / HOUR_MS)
-- Of earlier hours some minutes have expired.
local from = math.max(tonumber(redis.call("HGET", q.clock, "rolled_up") or 0), present - STATS_SECONDS / 3600 + 1)
local ends = math.min(from + most, present) -- the clock may have been put back

for hour = from, ends - 1 do
  local sums = {}
  for minute = hour * 60, hour * 60 + 59 do
    local counters = redis.call("HGETALL", q.stats .. string.format("%.0f", minute))
    for i = 1, #counters, 2 do sums[counters[i]] = (sums[counters[i]] or 0) + counters[i + 1] end
  end
  local flat, key = {}, q.hours .. string.format("%.0f", hour)
  for name, sum in pairs(sums) do flat[#flat + 1], flat[#flat + 2] = name, string.format("%.0f", sum) end
  if #flat > 0 then
    redis.call("HSET", key, unpack(flat)) -- not added: after a torn log it may be here already
    redis.call("EXPIRE", key, HOURS_SECONDS)
  end
end
redis.call("HSET", q.clock, "rolled_up", string.format("%.0f", ends))
return present - ends
