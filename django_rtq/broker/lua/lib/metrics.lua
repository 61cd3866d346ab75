-- metrics: counters of tasks and clients, hour by hour.
-- uses: prelude

local MOST_NAMES, TASKS_SECONDS = 10000, 180000

-- Names are made by users: of more than so many, the later ones are not counted one by one.
local function has_room(hash, name)
  return redis.call("HLEN", hash) < MOST_NAMES or redis.call("HEXISTS", hash, name) == 1
end

-- The counters of the tasks in this hour.
local function task_counters(q, now)
  return q.tasks .. string.format("%.0f", math.floor(now / HOUR_MS))
end
