-- task_failures: tasks whose last runs all failed, and the runs of the last minutes of tasks of which some failed. Reads only.
-- uses: prelude
-- ARGV[1] minutes     how many, the present one included
-- ARGV[2] least       how many runs of a task have to have failed in a row to be told
--
-- returns {{task, "<how many failed in a row> <since when, ms> <how many succeeded since>", ...}, {minute, {task, failed,
--         succeeded, ...}}, ...}: the minutes since 1970 in which any of these tasks ran; then in place of a minute the two
--         newest versions of the project, the newest first, for tasks that failed in either
-- sent twice: changes nothing

local q, minutes, least = named(), tonumber(ARGV[1]), tonumber(ARGV[2])
local present, failed, tasks, seen, in_a_row = math.floor(now_ms(q.clock) / 60000), {}, {}, {}, {}
local MOST, MOST_OF_VERSIONS = 500, 100 -- tasks that are told

local function key_of(runs, minute)
  return runs .. string.format("%.0f", minute)
end

local streaks = redis.call("HGETALL", q.failing)
for i = 1, #streaks, 2 do
  if tonumber(string.match(streaks[i + 1], "^%d+")) >= least then
    in_a_row[#in_a_row + 1], in_a_row[#in_a_row + 2] = streaks[i], streaks[i + 1]
  end
end
-- The two newest versions of the project, if there are two: the tasks that have failed with them.
local versions = redis.call("ZREVRANGE", q.run_versions, 0, 1)
if #versions < 2 then versions = {} end
for _, version in ipairs(versions) do
  for _, task in ipairs(redis.call("HKEYS", q.failed_runs .. "v" .. version)) do
    if not seen[task] and #tasks < MOST_OF_VERSIONS then tasks[#tasks + 1], seen[task] = task, true end
  end
end
local of_versions = #tasks

for minute = present - minutes + 1, present do
  local counters = redis.call("HGETALL", key_of(q.failed_runs, minute))
  failed[minute] = {}
  for i = 1, #counters, 2 do
    local task = counters[i]
    if not seen[task] and #tasks < MOST then tasks[#tasks + 1], seen[task] = task, true end
    failed[minute][task] = counters[i + 1]
  end
end

-- The runs of these tasks in a minute.
local function runs_in(minute)
  local runs, n, of_minute = {}, 0, failed[minute]
  local done = #tasks > 0 and redis.call("HMGET", key_of(q.done_runs, minute), unpack(tasks)) or {}
  for i, task in ipairs(tasks) do
    if done[i] or of_minute[task] then
      runs[n + 1], runs[n + 2], runs[n + 3] = task, of_minute[task] or "0", done[i] or "0"
      n = n + 3
    end
  end
  return runs
end

local answer = { in_a_row }
for minute = present - minutes + 1, present do
  local runs = runs_in(minute)
  if #runs > 0 then answer[#answer + 1] = { minute, runs } end
end
for _, version in ipairs(of_versions > 0 and versions or {}) do
  local names, runs = {}, {}
  for i = 1, of_versions do names[2 * i - 1], names[2 * i] = "failed " .. tasks[i], "done " .. tasks[i] end
  local numbers = redis.call("HMGET", q.tasks .. "v" .. version, unpack(names))
  for i = 1, of_versions do
    runs[3 * i - 2], runs[3 * i - 1], runs[3 * i] = tasks[i], numbers[2 * i - 1] or "0", numbers[2 * i] or "0"
  end
  answer[#answer + 1] = { version, runs }
end
return answer
