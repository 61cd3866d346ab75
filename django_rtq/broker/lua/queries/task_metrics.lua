-- task_metrics: how the jobs of each task of a queue ended, summed over some hours. Reads only.
-- uses: prelude
-- keys: clock tasks workers running_of
-- ARGV[1] hours       how many before the present one, at most 48
--
-- returns {name, number, ...}, with the histograms of run times only if jobs run
-- sent twice: changes nothing

local q, hours = named(), tonumber(ARGV[1])
local hour, sums, answer = math.floor(now_ms(q.clock) / HOUR_MS), {}, {}
-- Names are "done task", or for a bucket "r-3 task" and "w7 task".
local byte, LAST_DIGIT, RUN_TIMES = string.byte, string.byte("9"), string.byte("r")

local function runs_jobs()
  for _, worker in ipairs(redis.call("ZRANGE", q.workers, 0, -1)) do
    if redis.call("EXISTS", q.running_of .. worker) == 1 then return true end
  end
  return false
end

local with_runs = runs_jobs()
for each = hour - hours, hour do
  local counters = redis.call("HGETALL", q.tasks .. string.format("%.0f", each))
  for i = 1, #counters, 2 do
    local name = counters[i]
    if byte(name, 2) > LAST_DIGIT or (with_runs and byte(name) == RUN_TIMES) then
      sums[name] = (sums[name] or 0) + counters[i + 1]
    end
  end
end
for name, number in pairs(sums) do answer[#answer + 1], answer[#answer + 2] = name, number end
return answer
