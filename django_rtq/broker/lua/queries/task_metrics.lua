-- task_metrics: counters of the tasks of a queue, summed over some hours. Reads only.
-- uses: prelude
-- keys: clock tasks
-- ARGV[1] hours       how many before the present one, at most 48
--
-- returns {name, number, ...}
-- sent twice: changes nothing

local q, hours = named(), tonumber(ARGV[1])
local hour, sums, answer = math.floor(now_ms(q.clock) / HOUR_MS), {}, {}

for each = hour - hours, hour do
  local counters = redis.call("HGETALL", q.tasks .. string.format("%.0f", each))
  for i = 1, #counters, 2 do sums[counters[i]] = (sums[counters[i]] or 0) + counters[i + 1] end
end
for name, number in pairs(sums) do answer[#answer + 1], answer[#answer + 2] = name, number end
return answer
