-- metrics: counters of tasks and clients.
-- uses: prelude

local MOST_NAMES, TASKS_SECONDS = 10000, 180000
local MINUTES_SECONDS, FAILING_SECONDS = 600, 86400
local VERSION_SECONDS, MOST_VERSIONS = 604800, 5 -- the newest
local RECOVERED = 50 -- runs that have to succeed in a row
local SLICE_MS, ALL_TIME, ALL_RUNS = 600000, "\n", "\nruns" -- of clients; no client has these names

-- Whether a counter may be added: names come from users, and beyond this number new names are not counted.
local function has_room(hash, name)
  return redis.call("HLEN", hash) < MOST_NAMES or redis.call("HEXISTS", hash, name) == 1
end

-- Add to a counter that may be added to.
local function add_counter(hash, name, number)
  if has_room(hash, name) then redis.call("HINCRBY", hash, name, number) end
end

-- Count runs of a task in this minute.
local function count_in_minute(runs, now, task, number)
  local key = runs .. string.format("%.0f", math.floor(now / 60000))
  if tonumber(number) == 0 or not has_room(key, task) then return end
  if redis.call("HINCRBY", key, task, number) == tonumber(number) then redis.call("EXPIRE", key, MINUTES_SECONDS) end
end

-- Forget that runs of a task failed: it has recovered.
local function forget_failures(q, now, task)
  redis.call("HDEL", q.failing, task)
  for minute = math.floor(now / 60000) - MINUTES_SECONDS / 60, math.floor(now / 60000) do
    redis.call("HDEL", q.failed_runs .. string.format("%.0f", minute), task)
  end
end

-- Count runs of a task that ended lately; how many failed in a row: those since the last that succeeded; and how many
-- succeeded in a row after a failure. In which order the runs of one call ended is not known: if some failed and some did
-- not, neither did so in a row.
local function count_runs(q, now, task, done, failed)
  count_in_minute(q.done_runs, now, task, done)
  count_in_minute(q.failed_runs, now, task, failed)
  local entry = redis.call("HGET", q.failing, task)
  done, failed = tonumber(done), tonumber(failed)
  if not entry and (failed == 0 or not has_room(q.failing, task)) then return end
  local number, since, good = string.match(entry or "0 0 0", "^(%d+) (%d+) (%d+)$")
  if tonumber(number) == 0 then since = now end
  number, good = done == 0 and number + failed or 0, failed == 0 and good + done or 0
  if good >= RECOVERED then return forget_failures(q, now, task) end
  redis.call("HSET", q.failing, task, string.format("%.0f %.0f %.0f", number, since, good))
  redis.call("EXPIRE", q.failing, FAILING_SECONDS)
end

-- Count runs by the version of the project: those of each task, and those of the queue, as of a task without a name. `counted`:
-- name and number of each counter, up to the index `last`.
local function count_version(q, now, version, counted, last)
  if redis.call("ZADD", q.run_versions, "NX", now, version) == 1 then
    for _, old in ipairs(redis.call("ZRANGE", q.run_versions, 0, -MOST_VERSIONS - 1)) do
      redis.call("UNLINK", q.tasks .. "v" .. old, q.failed_runs .. "v" .. old)
      redis.call("ZREM", q.run_versions, old)
    end
  end
  local key, failed, sums = q.tasks .. "v" .. version, q.failed_runs .. "v" .. version, {}
  for i = 1, last, 2 do
    local kind, task = string.match(counted[i], "^(%S+) (.*)$")
    if kind == "done" or kind == "failed" or string.find(kind or "", "^r%-?%d") then
      add_counter(key, counted[i], counted[i + 1])
      sums[kind] = (sums[kind] or 0) + counted[i + 1]
    end
    if kind == "failed" then add_counter(failed, task, counted[i + 1]) end
  end
  for kind, number in pairs(sums) do add_counter(key, kind .. " ", string.format("%.0f", number)) end
  for _, each in ipairs({ q.run_versions, key, failed }) do redis.call("EXPIRE", each, VERSION_SECONDS) end
end

-- Count a crashed run of a task, in place of the dead worker, which ran the version `q.version` of the project, if that is known.
local function count_task_crash(q, record, end_name, now)
  local task = string.match(record, '^[^\n]*\n{"task":"([^"\\]+)"')
  if not task then return end
  local tasks = q.tasks .. math.floor(now / HOUR_MS)
  for _, kind in ipairs({ "failed ", "crashed ", end_name .. " " }) do add_counter(tasks, kind .. task, 1) end
  redis.call("EXPIRE", tasks, TASKS_SECONDS)
  count_runs(q, now, task, "0", "1")
  if q.version then count_version(q, now, q.version, { "failed " .. task, 1 }, 2) end
end
