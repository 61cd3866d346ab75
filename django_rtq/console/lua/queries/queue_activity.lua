-- queue_activity: what happened lately in a queue: which tasks fail, what failed last, and who kept the workers busy. Reads only.
-- uses: prelude metrics startable failures
-- ARGV[1] minutes     how many, the present one included
-- ARGV[2] least       how many runs of a task have to have failed in a row to be told
-- ARGV[3] bytes       how much to return of a record, and of the newest failure of a job
--
-- returns {{task, "<how many failed in a row> <since when, ms> <how many succeeded since>", ...}; {{minute, {task, failed,
--         succeeded, ...}}, ...}: of tasks of which some runs failed, by the minute since 1970; then in place of a minute 0,
--         for this hour and the one before, and the two newest versions of the project, the newest first, for tasks that
--         failed in either; {} if no runs failed; {id, start of the record, of the newest failure} of the job that died
--         last; of that with the latest next attempt; {the client with most run time in the last hour, its µs, µs of all
--         clients, for how many ms the oldest job of another waits that might start}}; {} where there is none

local q, minutes, least, bytes = named(), tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms(q.clock)
local present, hour, tasks, seen, in_a_row, periods = math.floor(now / 60000), math.floor(now / HOUR_MS), {}, {}, {}, {}
local MOST, MOST_OF_VERSIONS = 500, 100 -- tasks that are told
local SLICES = 6 -- of ten minutes

local streaks = redis.call("HGETALL", q.failing)
for i = 1, #streaks, 2 do
  if tonumber(string.match(streaks[i + 1], "^%d+")) >= least then
    in_a_row[#in_a_row + 1], in_a_row[#in_a_row + 2] = streaks[i], streaks[i + 1]
  end
end

-- Add the tasks of which runs failed in a minute, or with a version.
local function add_tasks(failed, most)
  for _, task in ipairs(redis.call("HKEYS", failed)) do
    if not seen[task] and #tasks < most then tasks[#tasks + 1], seen[task] = task, true end
  end
end

-- Tell the runs of the first n of these tasks: how many failed, and how many did not, by these hashes and what their fields
-- begin with, the failed ones first.
local function add_period(name, n, hashes)
  local runs = {}
  for i = 1, n do runs[3 * i - 2], runs[3 * i - 1], runs[3 * i] = tasks[i], 0, 0 end
  for h, hash in ipairs(n > 0 and hashes or {}) do
    local fields = {}
    for i = 1, n do fields[i] = hash[2] .. tasks[i] end
    for i, number in ipairs(redis.call("HMGET", hash[1], unpack(fields))) do
      local place = 3 * i - h % 2
      runs[place] = runs[place] + (number or 0)
    end
  end
  if n > 0 then periods[#periods + 1] = { name, runs } end
end

-- The two newest versions of the project, if there are two: the tasks that have failed with them.
local versions = redis.call("ZREVRANGE", q.run_versions, 0, 1)
if #versions < 2 then versions = {} end
for _, version in ipairs(versions) do add_tasks(q.failed_runs .. "v" .. version, MOST_OF_VERSIONS) end
local of_versions = #tasks
for minute = present - minutes + 1, present do add_tasks(q.failed_runs .. minute, MOST) end

for minute = present - minutes + 1, present do
  add_period(minute, #tasks, { { q.failed_runs .. minute, "" }, { q.done_runs .. minute, "" } })
end
local this_hour, before = q.tasks .. hour, q.tasks .. (hour - 1)
add_period(0, #tasks, { { this_hour, "failed " }, { this_hour, "done " }, { before, "failed " }, { before, "done " } })
for _, version in ipairs(versions) do
  local counted = q.tasks .. "v" .. version
  add_period(version, of_versions, { { counted, "failed " }, { counted, "done " } })
end

local function failure_of(id)
  if not id then return {} end
  local lines = redis.call("HGET", q.errors, id) or ""
  local newest = start_of_newest(lines)
  local record = redis.call("HGET", q.jobs, id) or ""
  return { id, string.sub(record, 1, bytes), string.sub(lines, newest, newest + bytes - 1) }
end

-- Only while jobs of several clients wait. A client that had most of the hour is the first of some of its slices.
local function busiest_client()
  if redis.call("ZCARD", q.lanes) < 2 then return {} end
  local slice, found, total, busiest, most = math.floor(now / SLICE_MS), {}, 0, false, 0
  for each = slice - SLICES + 1, slice do
    total = total + (redis.call("HGET", q.client_runs .. each, ALL_TIME) or 0)
    local first = redis.call("ZREVRANGE", q.client_time .. each, 0, 0)[1]
    if first then found[first] = 0 end
  end
  for client in pairs(found) do
    local us = 0
    for each = slice - SLICES + 1, slice do
      us = us + (redis.call("ZSCORE", q.client_time .. each, client) or 0)
    end
    if us > most then busiest, most = client, us end
  end
  local since = busiest and oldest_startable(q, now, busiest)
  return since and { busiest, most, total, math.max(0, now - since) } or {}
end

local died = failure_of(redis.call("ZREVRANGE", q.dead, 0, 0)[1])
return { in_a_row, periods, died, failure_of(redis.call("ZREVRANGE", q.retrying, 0, 0)[1]), busiest_client() }
