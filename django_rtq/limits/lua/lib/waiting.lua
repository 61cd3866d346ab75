-- waiting: whether a queue and a client have room for one job more (max_waiting).
-- Jobs wait in a lane or for their time. Those of a queue are all jobs that are not dead and do not run. Those of a client
-- are the ids in its lanes and in its index of `scheduled`. Among these may be ids of cancelled jobs, which are counted only
-- when a client seems to be full.
-- created when first called

local MOST_COUNTED = 2000 -- ids of cancelled jobs; of more, some are taken for jobs

-- The bands in which a client may have jobs. One in which all clients are blocked is not in `bands`.
local function bands_of(q, client)
  local bands, known = redis.call("ZRANGE", q.bands, 0, -1), {}
  for _, band in ipairs(bands) do known[band] = true end
  for band in string.gmatch(redis.call("HGET", q.blocked, client) or "", "%S+") do
    if not known[band] then bands[#bands + 1] = band end
  end
  return bands
end

-- How many ids there are in the lanes of a client.
local function count_lanes_of(q, client)
  local queued = 0
  for _, band in ipairs(bands_of(q, client)) do queued = queued + redis.call("LLEN", q.lane .. band .. ":" .. client) end
  return queued
end

-- How many jobs wait, and how many may: of a client, or of the queue. Where there is no limit, nothing is counted.
local function read_room(q, client)
  local own = client and "client:" .. client or "queue"
  local found = redis.call("HMGET", q.waiting_limits, own, client and "clients" or own)
  local most = tonumber(found[1] or found[2] or "")
  if not most then return { waiting = 0, most = math.huge } end
  if client then
    local scheduled = redis.call("ZCARD", q.scheduled_by_client .. ":" .. client)
    return { waiting = scheduled + count_lanes_of(q, client), most = most }
  end
  local running = tonumber(redis.call("HGET", q.running_counts, "queue") or 0)
  return { waiting = redis.call("HLEN", q.jobs) - redis.call("ZCARD", q.dead) - running, most = most }
end

-- Leave the ids of cancelled jobs out of what waits for a client.
local function leave_out_cancelled(q, room, client)
  room.is_exact = true
  local lanes = redis.call("HLEN", q.cancelled_in_lane) <= MOST_COUNTED and redis.call("HVALS", q.cancelled_in_lane) or {}
  for _, lane in ipairs(lanes) do
    if string.match(lane, "^[^:]*:(.*)$") == client then room.waiting = room.waiting - 1 end
  end
end

-- Take places for new jobs of a client, or one. Returns nothing, or why there are none. `rooms` is a table for the calls in one
-- script.
local function take_place(q, rooms, client, n)
  n = n or 1
  rooms.queue, rooms.clients = rooms.queue or read_room(q), rooms.clients or {}
  rooms.clients[client] = rooms.clients[client] or read_room(q, client)
  local of_queue, of_client = rooms.queue, rooms.clients[client]
  local seems_full = of_client.waiting + n > of_client.most and not of_client.is_exact
  if seems_full then leave_out_cancelled(q, of_client, client) end
  if of_client.waiting + n > of_client.most then return "full client " .. of_client.waiting .. " " .. of_client.most end
  if of_queue.waiting + n > of_queue.most then return "full queue " .. of_queue.waiting .. " " .. of_queue.most end
  of_client.waiting, of_queue.waiting = of_client.waiting + n, of_queue.waiting + n
end
