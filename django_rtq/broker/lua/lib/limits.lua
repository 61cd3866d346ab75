-- limits: how many jobs a queue, and each of its clients, may run at once, and which clients are paused.
-- A client that may not start a job is blocked: it stays in its ring, behind all others, with the turn "inf", until it
-- may. Claims find that out when its turn comes, so nothing else has to know the limits. A claim that finds limits writes
-- the client behind each entry of a processing list, and these jobs are counted in `running_counts`.
-- created when first called
-- uses: lanes

-- A limit from the values of a client and those of each client, or of the queue; nil: none. Values are "name=value", the
-- first of a name holds.
local function limit_of(name, own, default)
  return tonumber(string.match(" " .. (own or "") .. " " .. (default or ""), " " .. name .. "=(%S+)"))
end

-- How many more jobs each of these clients may start.
local function read_rooms(q, clients)
  if #clients == 0 then return {} end
  local fields, names, rooms = { "clients" }, {}, {}
  for i, client in ipairs(clients) do
    names[i] = "client:" .. client
    fields[2 * i], fields[2 * i + 1] = names[i], "paused:" .. client
  end
  local entries = redis.call("HMGET", q.limits, unpack(fields))
  for i, running in ipairs(redis.call("HMGET", q.running_counts, unpack(names))) do
    local most = limit_of("max_running", entries[2 * i], entries[1])
    rooms[i] = entries[2 * i + 1] and 0 or most and most - tonumber(running or 0) or math.huge
  end
  return rooms
end

-- How many more jobs the queue may start.
local function queue_room(q)
  local most = limit_of("max_running", redis.call("HGET", q.limits, "queue"))
  return most and most - tonumber(redis.call("HGET", q.running_counts, "queue") or 0) or math.huge
end

-- Let a client wait in this band until it may start a job.
local function block(q, band, client)
  local bands = redis.call("HGET", q.blocked, client)
  if not string.find(" " .. (bands or "") .. " ", " " .. band .. " ", 1, true) then
    redis.call("HSET", q.blocked, client, bands and bands .. " " .. band or band)
  end
  redis.call("ZADD", q.ring .. band, "inf", client)
end

-- Let a blocked client take turns again, if it may start a job.
local function unblock(q, client)
  local bands = redis.call("HGET", q.blocked, client)
  if not bands or read_rooms(q, { client })[1] <= 0 then return end
  for band in string.gmatch(bands, "%S+") do
    local ring = q.ring .. band
    if redis.call("ZSCORE", ring, client) == "inf" then
      if redis.call("EXISTS", q.lane .. band .. ":" .. client) == 1 then
        redis.call("ZADD", q.bands, rank(band), band)
        redis.call("ZADD", ring, redis.call("INCR", q.turn), client)
        redis.call("ZADD", q.work_signal, "0", "work")
      else
        redis.call("ZREM", ring, client)
      end
    end
  end
  redis.call("HDEL", q.blocked, client)
end
