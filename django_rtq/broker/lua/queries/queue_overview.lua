-- queue_overview: numbers of jobs in a queue, and its state. Reads only. Its cost does not depend on the length of the queue.
-- uses: prelude lanes task_pauses
-- keys: jobs scheduled retrying dead workers lanes paused clock results running_of waiting_since
--       cancelled_in_lane lane
-- returns {now, live jobs, scheduled, retrying, dead, running, lanes with work, since when the oldest waits, paused since,
--         outcomes kept, last sign of life of a worker, last run of promote, by how many ms the server's clock is
--         behind, {task, its entry, how many jobs its pause holds, ...}, the number of jobs in no place and since when};
--         "" for a missing time or number
-- sent twice: changes nothing

local q, running = named(), 0
local LANES, DEEP = 30, 20 -- search depth for the oldest job among cancelled ones

-- Since when the first job of a lane waits that was not cancelled, within the search depth.
local function lane_waits_since(lane, of_first, now)
  for i, id in ipairs(redis.call("LRANGE", q.lane .. lane, 0, DEEP - 1)) do
    if redis.call("HEXISTS", q.jobs, id) == 1 then return i == 1 and tonumber(of_first) or waiting_since(q, id, now) end
  end
end

-- Since when the oldest job waits: as `lanes` says, unless that may be a cancelled job.
local function oldest_since(now)
  local lanes, oldest = redis.call("ZRANGE", q.lanes, 0, LANES - 1, "WITHSCORES"), nil
  if redis.call("EXISTS", q.cancelled_in_lane) == 0 then return lanes[2] end
  for i = 1, #lanes, 2 do
    local since = lane_waits_since(lanes[i], lanes[i + 1], now)
    oldest = since and math.min(since, oldest or since) or oldest
  end
  return oldest and string.format("%.0f", oldest) or lanes[2]
end

-- Tasks that are paused, or whose jobs are on their way back.
local function paused_tasks()
  local tasks, entries = {}, redis.call("HGETALL", q.paused)
  for i = 1, #entries, 2 do
    local task, n = string.match(entries[i], "^task:(.*)$"), #tasks
    if task then
      local bottom, top = scores_of(entries[i + 1])
      tasks[n + 1], tasks[n + 2], tasks[n + 3] = task, entries[i + 1], redis.call("ZCOUNT", q.scheduled, bottom, top)
    end
  end
  return tasks
end

for _, worker in ipairs(redis.call("ZRANGE", q.workers, 0, -1)) do
  running = running + redis.call("HLEN", q.running_of .. worker)
end
local now, _, clock = now_ms(q.clock)
local retrying = redis.call("ZCARD", q.retrying)
local live, waiting, dead = redis.call("HLEN", q.jobs), redis.call("ZCARD", q.scheduled), redis.call("ZCARD", q.dead)
local queued = math.max(0, live - waiting - dead - running) -- a lane may contain only cancelled jobs
return {
  now,
  live,
  waiting - retrying,
  retrying,
  dead,
  running,
  math.min(redis.call("ZCARD", q.lanes), queued),
  queued > 0 and oldest_since(now) or "",
  redis.call("HGET", q.paused, "queue") or "",
  redis.call("HLEN", q.results),
  redis.call("HGET", q.clock, "contact") or "",
  redis.call("HGET", q.clock, "promoted") or "",
  math.max(0, now - clock),
  paused_tasks(),
  redis.call("HGET", q.clock, "lost") or "",
}
