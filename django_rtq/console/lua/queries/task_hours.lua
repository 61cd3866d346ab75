-- task_hours: how many counters of tasks each hour of a queue has. Reads only.
-- uses: prelude
-- ARGV[1] hours       how many before the present one, at most 48
--
-- returns {the present hour since 1970, counters of the first hour, ..., of the present one}

local q, hours = named(), tonumber(ARGV[1])
local hour = math.floor(now_ms(q.clock) / HOUR_MS)

local answer = { hour }
for each = hour - hours, hour do answer[#answer + 1] = redis.call("HLEN", q.tasks .. string.format("%.0f", each)) end
return answer
