-- task_hours: counters of the tasks of a queue: of the present hour, and summed over the hours before it. Reads only.
-- uses: prelude
-- keys: clock tasks
-- ARGV[1] hours       how many before the present one, at most 48
-- ARGV[2] known       the mark of an earlier reply; if nothing has changed since, the hours before are left out
--
-- returns {mark, {name, number, ... of the hours before}, {name, number, ... of the present one}}. The mark: the hour, and how
--         many of those before have counters
-- sent twice: changes nothing

local q, hours, known = named(), tonumber(ARGV[1]), ARGV[2]
local hour, past = math.floor(now_ms(q.clock) / HOUR_MS), {}

local function sums_of(keys)
  local sums, answer = {}, {}
  for _, key in ipairs(keys) do
    local counters = redis.call("HGETALL", key)
    for i = 1, #counters, 2 do sums[counters[i]] = (sums[counters[i]] or 0) + counters[i + 1] end
  end
  for name, number in pairs(sums) do answer[#answer + 1], answer[#answer + 2] = name, number end
  return answer
end

for each = hour - hours, hour - 1 do past[#past + 1] = q.tasks .. string.format("%.0f", each) end
local mark = string.format("%.0f %.0f", hour, #past > 0 and redis.call("EXISTS", unpack(past)) or 0)
return { mark, mark ~= known and sums_of(past) or {}, sums_of({ q.tasks .. string.format("%.0f", hour) }) }
