-- metrics: counters of tasks and clients.
-- uses: prelude

local MOST_NAMES, TASKS_SECONDS = 10000, 180000
local SLICE_MS, ALL_TIME, ALL_RUNS = 600000, "\n", "\nruns" -- of clients; no client has these names

-- Whether a counter may be added: names come from users, and beyond this number new names are not counted.
local function has_room(hash, name)
  return redis.call("HLEN", hash) < MOST_NAMES or redis.call("HEXISTS", hash, name) == 1
end

-- The key of this hour's counters of tasks.
local function task_counters(q, now)
  return q.tasks .. string.format("%.0f", math.floor(now / HOUR_MS))
end
