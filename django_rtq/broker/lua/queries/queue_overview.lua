-- queue_overview: numbers of jobs in a queue, and its state. Reads only. Its cost does not depend on the length of the queue.
-- uses: prelude startable task_pauses waiting runners
-- keys: jobs scheduled retrying dead workers lanes paused clock results running_of waiting_since
--       cancelled_in_lane lane limits blocked bands ring paused_clients runners signed_on
-- returns {now, live jobs, scheduled, retrying, dead, running, lanes with work, since when the oldest waits of the jobs that
--         might start, paused since, outcomes kept, last sign of life of a worker, last run of promote, by how many ms
--         the server's clock is behind, {task, its entry, how many jobs its pause holds, ...}, the number of jobs in no
--         place and since when, {client, its pause, its queued jobs, ...}}; "" for a missing time or number
-- sent twice: changes nothing

local q = named()
local CLIENTS = 50 -- paused clients that are told

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

-- Clients that are paused, the longest first. The index may name one that is not, after a torn log.
local function paused_clients()
  local clients = {}
  for _, client in ipairs(redis.call("ZRANGE", q.paused_clients, 0, CLIENTS - 1)) do
    local pause, n = redis.call("HGET", q.limits, "paused:" .. client), #clients
    if pause then clients[n + 1], clients[n + 2], clients[n + 3] = client, pause, count_lanes_of(q, client) end
  end
  return clients
end

local now, _, clock = now_ms(q.clock)
local running = count_running(q)
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
  queued > 0 and oldest_startable(q, now) or "",
  redis.call("HGET", q.paused, "queue") or "",
  redis.call("HLEN", q.results),
  redis.call("HGET", q.clock, "contact") or "",
  redis.call("HGET", q.clock, "promoted") or "",
  math.max(0, now - clock),
  paused_tasks(),
  redis.call("HGET", q.clock, "lost") or "",
  paused_clients(),
}
