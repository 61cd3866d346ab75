-- task_failures: tasks whose last runs all failed, and the runs of the last minutes of tasks of which some failed. Reads only.
-- uses: prelude
-- keys: clock done_runs failed_runs failing
-- ARGV[1] minutes     how many, the present one included
-- ARGV[2] least       how many runs of a task have to have failed in a row to be told
--
-- returns {{task, "<how many failed in a row> <since when, ms> <how many succeeded since>", ...}, {minute, {task, failed, succeeded,
--         ...}}, ...}: the minutes since 1970 in which any of these tasks ran
-- sent twice: changes nothing

local q, minutes, least = named(), tonumber(ARGV[1]), tonumber(ARGV[2])
local present, failed, tasks, in_a_row = math.floor(now_ms(q.clock) / 60000), {}, {}, {}

local function key_of(runs, minute)
  return runs .. string.format("%.0f", minute)
end

local streaks = redis.call("HGETALL", q.failing)
for i = 1, #streaks, 2 do
  if tonumber(string.match(streaks[i + 1], "^%d+")) >= least then
    in_a_row[#in_a_row + 1], in_a_row[#in_a_row + 2] = streaks[i], streaks[i + 1]
  end
end
for minute = present - minutes + 1, present do
  local counters = redis.call("HGETALL", key_of(q.failed_runs, minute))
  failed[minute] = {}
  for i = 1, #counters, 2 do
    local task = counters[i]
    if not tasks[task] then tasks[#tasks + 1], tasks[task] = task, true end
    failed[minute][task] = counters[i + 1]
  end
end
local answer = { in_a_row }
for minute = present - minutes + 1, #tasks > 0 and present or 0 do
  local runs, done = {}, redis.call("HMGET", key_of(q.done_runs, minute), unpack(tasks, 1, math.min(#tasks, 1000)))
  for i, task in ipairs(tasks) do
    if done[i] or failed[minute][task] then
      local n = #runs
      runs[n + 1], runs[n + 2], runs[n + 3] = task, failed[minute][task] or "0", done[i] or "0"
    end
  end
  if #runs > 0 then answer[#answer + 1] = { minute, runs } end
end
return answer
