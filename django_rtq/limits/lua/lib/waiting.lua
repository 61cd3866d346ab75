-- waiting: whether a queue and a client have room for one job more (max_waiting).
-- Jobs wait in a lane or for their time. Those of a queue are all jobs that are not dead and do not run. Those of a client
-- are the ids in its lanes and in its index of `scheduled`. Among these may be ids of cancelled jobs, which are counted only
-- when a client seems to be full.
-- created when first called

local MOST_COUNTED = 2000 -- ids of cancelled jobs; of more, some are taken for jobs

local function queue_waiting(q)
  local running = tonumber(redis.call("HGET", q.running_counts, "queue") or 0)
  return redis.call("HLEN", q.jobs) - redis.call("ZCARD", q.dead) - running
end

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

local function client_waiting(q, client)
  return redis.call("ZCARD", q.scheduled_by_client .. ":" .. client) + count_lanes_of(q, client)
end

-- How many jobs wait, and how many may. Where there is no limit, nothing is counted.
local function read_room(q, scope, client)
  local own = scope == "queue" and "queue" or "client:" .. client
  local found = redis.call("HMGET", q.waiting_limits, own, scope == "queue" and own or "clients")
  local most = tonumber(found[1] or found[2] or "")
  if not most then return { waiting = 0, most = math.huge } end
  return { waiting = scope == "queue" and queue_waiting(q) or client_waiting(q, client), most = most }
end

-- Leave the ids of cancelled jobs out of what waits for a client.
local function leave_out_cancelled(q, room, client)
  room.is_exact = true
  local lanes = redis.call("HLEN", q.cancelled_in_lane) <= MOST_COUNTED and redis.call("HVALS", q.cancelled_in_lane) or {}
  for _, lane in ipairs(lanes) do
    if string.match(lane, "^[^:]*:(.*)$") == client then room.waiting = room.waiting - 1 end
  end
end

-- Take a place for a new job. Returns nothing, or why there is none. `rooms` is a table for the calls in one script.
local function take_place(q, rooms, client)
  rooms.queue, rooms.clients = rooms.queue or read_room(q, "queue"), rooms.clients or {}
  rooms.clients[client] = rooms.clients[client] or read_room(q, "client", client)
  local of_queue, of_client = rooms.queue, rooms.clients[client]
  local seems_full = of_client.most <= of_client.waiting and not of_client.is_exact
  if seems_full then leave_out_cancelled(q, of_client, client) end
  if of_client.waiting >= of_client.most then return "full client " .. of_client.waiting .. " " .. of_client.most end
  if of_queue.waiting >= of_queue.most then return "full queue " .. of_queue.waiting .. " " .. of_queue.most end
  of_client.waiting, of_queue.waiting = of_client.waiting + 1, of_queue.waiting + 1
end

-- take_place() for many new jobs of a client.
local function take_places(q, rooms, client, n)
  local full = take_place(q, rooms, client)
  if full then return full end
  local of_client, of_queue, more = rooms.clients[client], rooms.queue, n - 1
  local seems_full = of_client.waiting + more > of_client.most and not of_client.is_exact
  if seems_full then leave_out_cancelled(q, of_client, client) end
  of_client.waiting, of_queue.waiting = of_client.waiting + more, of_queue.waiting + more
  if of_client.waiting > of_client.most then return "full client " .. of_client.waiting - n .. " " .. of_client.most end
  if of_queue.waiting > of_queue.most then return "full queue " .. of_queue.waiting - n .. " " .. of_queue.most end
end
