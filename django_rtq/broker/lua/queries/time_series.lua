-- time_series: counters of a queue over some time, summed by step. Reads only.
-- uses: prelude
-- keys: clock stats hours
-- ARGV[1] minutes     how many, the present one included; at most 2,880, or 43,200 in steps of whole hours
-- ARGV[2] step        minutes in a step
--
-- returns {now, steps, {index of a step, name, number, ...}, ...}: the steps with any events
-- sent twice: changes nothing

local q, minutes, step = named(), tonumber(ARGV[1]), tonumber(ARGV[2])
local now, steps = now_ms(q.clock), math.ceil(minutes / step)
local present = math.floor(now / 60000)
local first, oldest = math.floor(present / step) - steps + 1, present - STATS_SECONDS / 60
-- The hours before this one are read from the sums of hours, the others from the minutes.
local rolled_up = step % 60 == 0 and tonumber(redis.call("HGET", q.clock, "rolled_up") or 0) or 0
rolled_up = math.min(rolled_up, math.floor(present / 60)) -- the clock may have been put back
local answer = { now, steps }

local function add(counters, sums, names)
  for i = 1, #counters, 2 do
    local name = counters[i]
    if not sums[name] then names[#names + 1] = name end
    sums[name] = (sums[name] or 0) + counters[i + 1]
  end
end

for place = 0, steps - 1 do
  local sums, names = {}, {}
  local minute, ends = (first + place) * step, math.min((first + place + 1) * step, present + 1)
  while minute < ends do
    local is_hour = minute / 60 < rolled_up
    if is_hour then
      add(redis.call("HGETALL", q.hours .. string.format("%.0f", minute / 60)), sums, names)
    elseif minute >= oldest then
      add(redis.call("HGETALL", q.stats .. string.format("%.0f", minute)), sums, names)
    end
    minute = minute + (is_hour and 60 or 1)
  end
  local entry = { place }
  for _, name in ipairs(names) do entry[#entry + 1], entry[#entry + 2] = name, sums[name] end
  if #names > 0 then answer[#answer + 1] = entry end
end
return answer
