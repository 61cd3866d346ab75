-- queue_overview: numbers of jobs in a queue, and its state. Reads only. Its cost does not depend on the length of the queue.
-- uses: prelude startable task_pauses waiting runners rates
-- returns {now, live jobs, scheduled, retrying, dead, running, lanes with work, since when the oldest waits of the jobs that
--         might start, paused since, outcomes kept, last sign of life of a worker, last run of promote, by how many ms
--         the server's clock is behind, {{task, its entry, how many jobs its pause holds}, ...}, the number of jobs in no
--         place and since when, {{client, its pause, its queued jobs}, ...}, the limits of the queue, when it may start a
--         job if only its rate stops it, {{field of `limits` that lets nothing run, of how many of the lanes that wait
--         longest, what was set there at run time}, ...}}; "" for a missing time or number

local q = named()
local CLIENTS = 50 -- paused clients that are told
local LANES = 100 -- that wait longest, of which it is told whether they may start a job at all

-- Tasks that are paused, or whose jobs are on their way back.
local function paused_tasks()
  local tasks, entries = {}, redis.call("HGETALL", q.paused)
  for i = 1, #entries, 2 do
    local task = string.match(entries[i], "^task:(.*)$")
    if task then tasks[#tasks + 1] = { task, entries[i + 1], redis.call("ZCOUNT", q.scheduled, scores_of(entries[i + 1])) } end
  end
  return tasks
end

-- Clients that are paused, the longest first. The index may name one that is not, after a torn log.
local function paused_clients()
  local clients = {}
  for _, client in ipairs(redis.call("ZRANGE", q.paused_clients, 0, CLIENTS - 1)) do
    local pause = redis.call("HGET", q.limits, "paused:" .. client)
    if pause then clients[#clients + 1] = { client, pause, count_lanes_of(q, client) } end
  end
  return clients
end

local function most_of(text)
  return text and value_of(" " .. text, "max_running")
end

-- Limits of 0: of the queue, of each client, and own ones of clients, for which jobs wait.
local function zero_limits()
  local of_queue, default = unpack(redis.call("HMGET", q.limits, "queue", "clients"))
  local fields, counts, zeros = {}, {}, {}
  local function note(field)
    if not counts[field] then zeros[#zeros + 1] = field end
    counts[field] = (counts[field] or 0) + 1
  end
  if most_of(of_queue) == "0" then note("queue") end
  for i, lane in ipairs(redis.call("ZRANGE", q.lanes, 0, LANES - 1)) do
    fields[i] = "client:" .. string.match(lane, "^[^:]*:(.*)$")
  end
  for i, own in ipairs(#fields > 0 and redis.call("HMGET", q.limits, unpack(fields)) or {}) do
    local most = most_of(own)
    if (most or most_of(default)) == "0" then note(most and fields[i] or "clients") end
  end
  for n, field in ipairs(zeros) do
    zeros[n] = { field, counts[field], redis.call("HGET", q.limit_sources, "run:" .. field) or "" }
  end
  return zeros
end

local now, _, clock = now_ms(q.clock)
local has_limits = redis.call("EXISTS", q.limits) == 1
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
  has_limits and redis.call("HGET", q.limits, "queue") or "",
  has_limits and redis.call("ZSCORE", q.next_starts, "queue") or "",
  has_limits and queued > 0 and zero_limits() or {},
}
