-- time_series: counters of a queue over some minutes, summed by step. Reads only.
-- uses: prelude
-- keys: clock stats
-- ARGV[1] minutes     how many, the present one included; at most 1,440
-- ARGV[2] step        minutes in a step
--
-- returns {now, steps, {index of a step, name, number, ...}, ...}: the steps with any events
-- sent twice: changes nothing

local q, minutes, step = named(), tonumber(ARGV[1]), tonumber(ARGV[2])
local now, steps = now_ms(q.clock), math.ceil(minutes / step)
local first = math.floor(now / 60000 / step) - steps + 1
local answer = { now, steps }

for place = 0, steps - 1 do
  local sums, names = {}, {}
  for minute = (first + place) * step, (first + place + 1) * step - 1 do
    local counters = redis.call("HGETALL", q.stats .. string.format("%.0f", minute))
    for i = 1, #counters, 2 do
      local name = counters[i]
      if not sums[name] then names[#names + 1] = name end
      sums[name] = (sums[name] or 0) + counters[i + 1]
    end
  end
  local entry = { place }
  for _, name in ipairs(names) do entry[#entry + 1], entry[#entry + 2] = name, sums[name] end
  if #names > 0 then answer[#answer + 1] = entry end
end
return answer
