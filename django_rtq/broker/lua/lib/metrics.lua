-- metrics: counters of tasks and clients.
-- uses: prelude

local MOST_NAMES, TASKS_SECONDS = 10000, 180000
local MINUTES_SECONDS, FAILING_SECONDS = 600, 86400
local SLICE_MS, ALL_TIME, ALL_RUNS = 600000, "\n", "\nruns" -- of clients; no client has these names

-- Whether a counter may be added: names come from users, and beyond this number new names are not counted.
local function has_room(hash, name)
  return redis.call("HLEN", hash) < MOST_NAMES or redis.call("HEXISTS", hash, name) == 1
end

-- The key of this hour's counters of tasks.
local function task_counters(q, now)
  return q.tasks .. string.format("%.0f", math.floor(now / HOUR_MS))
end

-- Count runs of a task in this minute.
local function count_in_minute(runs, now, task, number)
  local key = runs .. string.format("%.0f", math.floor(now / 60000))
  if tonumber(number) == 0 or not has_room(key, task) then return end
  if redis.call("HINCRBY", key, task, number) == tonumber(number) then redis.call("EXPIRE", key, MINUTES_SECONDS) end
end

-- Count runs of a task that ended lately, and how many failed in a row: those since the last that succeeded. In which order
-- the runs of one call ended is not known: if one of them succeeded, none in a row failed.
local function count_runs(q, now, task, done, failed)
  count_in_minute(q.done_runs, now, task, done)
  count_in_minute(q.failed_runs, now, task, failed)
  if tonumber(done) > 0 then
    redis.call("HDEL", q.failing, task)
  elseif tonumber(failed) > 0 and has_room(q.failing, task) then
    local number, since = string.match(redis.call("HGET", q.failing, task) or "", "^(%d+) (%d+)")
    redis.call("HSET", q.failing, task, string.format("%.0f %.0f %.0f", (number or 0) + failed, since or now, now))
    redis.call("EXPIRE", q.failing, FAILING_SECONDS)
  end
end
