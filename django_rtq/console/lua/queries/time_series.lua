-- time_series: counters of a queue over some time, summed by step. Reads only.
-- uses: prelude
-- ARGV[1] minutes     how many, the present one included; at most 2,880, or 43,200 in steps of whole hours
-- ARGV[2] step        minutes in a step
-- ARGV[3] from        the first minute to read, since 1970; 0: that of the first step
-- ARGV[4] ends        the minute to stop at; 0: after the present one
--
-- returns {now, steps, {number of a step since 1970, name, number, ...}, ...}: the steps with any events

local q, minutes, step, from, stop = named(), tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now, steps = now_ms(q.clock), math.ceil(minutes / step)
local present = math.floor(now / 60000)
local first, oldest = math.floor(present / step) - steps + 1, present - STATS_SECONDS / 60
-- The hours before this one are read from the sums of hours, the others from the minutes.
local rolled_up = step % 60 == 0 and tonumber(redis.call("HGET", q.clock, "rolled_up") or 0) or 0
rolled_up = math.min(rolled_up, math.floor(present / 60)) -- the clock may have been put back
local answer = { now, steps }
if stop == 0 then stop = present + 1 end

local function add(counters, sums, names)
  for i = 1, #counters, 2 do
    local name = counters[i]
    if not sums[name] then names[#names + 1] = name end
    sums[name] = (sums[name] or 0) + counters[i + 1]
  end
end

for place = math.max(0, math.floor(from / step) - first), math.min(steps, math.ceil(stop / step) - first) - 1 do
  local sums, names = {}, {}
  local minute, ends = math.max((first + place) * step, from), math.min((first + place + 1) * step, present + 1, stop)
  while minute < ends do
    local is_hour = minute / 60 < rolled_up
    if is_hour then
      add(redis.call("HGETALL", q.hours .. string.format("%.0f", minute / 60)), sums, names)
    elseif minute >= oldest then
      add(redis.call("HGETALL", q.stats .. string.format("%.0f", minute)), sums, names)
    end
    minute = minute + (is_hour and 60 or 1)
  end
  local entry = { first + place }
  for _, name in ipairs(names) do entry[#entry + 1], entry[#entry + 2] = name, sums[name] end
  if #names > 0 then answer[#answer + 1] = entry end
end
return answer
