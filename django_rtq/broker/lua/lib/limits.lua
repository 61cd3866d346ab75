-- limits: how many jobs a queue, and each of its clients, may run at once and start in a time, and which clients are
-- paused. A claim that finds limits writes the client behind each entry of a processing list, and these jobs are counted
-- in `running_counts`.
-- created when first called
-- uses: rates

-- The values "name=value" of a client and those of each client, or of the queue. The first of a name holds.
local function values_of(own, default)
  return " " .. (own or "") .. " " .. (default or "")
end

-- A limit in these values; nil: none.
local function limit_of(name, values)
  return tonumber(string.match(values, " " .. name .. "=(%S+)"))
end

-- Whether turns go by the time that jobs used, by the values of the queue.
local function has_time_turns(values)
  return string.match(values, " fair_by=(%l+)") == "seconds"
end

-- The weights of these clients, and at 0 that of all others.
local function read_weights(q, clients)
  local fields, weights = { "clients" }, {}
  for i, client in ipairs(clients) do fields[i + 1] = "client:" .. client end
  local entries = redis.call("HMGET", q.limits, unpack(fields))
  for i, values in ipairs(entries) do
    weights[i - 1] = limit_of("weight", values_of(values)) or weights[0] or 1
  end
  return weights
end

-- What the limits of these clients say, and of each whether it is paused. One hash holds them: it is read whole while it has
-- fewer fields than are asked for.
local function read_limits(q, clients)
  local of, values, are_paused = {}, {}, {}
  if redis.call("HLEN", q.limits) <= #clients then
    local fields = redis.call("HGETALL", q.limits)
    for i = 1, #fields, 2 do of[fields[i]] = fields[i + 1] end
  else
    local fields = { "clients" }
    for i, client in ipairs(clients) do
      fields[2 * i], fields[2 * i + 1] = "client:" .. client, "paused:" .. client
    end
    for i, found in ipairs(redis.call("HMGET", q.limits, unpack(fields))) do of[fields[i]] = found end
  end
  local default = values_of(nil, of.clients)
  for i, client in ipairs(clients) do
    local own = of["client:" .. client]
    values[i], are_paused[i] = own and values_of(own, of.clients) or default, of["paused:" .. client]
  end
  return values, are_paused
end

-- How many more jobs each of these clients may start, and when (ms) those may start one that only their rate stops.
local function read_rooms(q, clients)
  if #clients == 0 then return {}, {} end
  local names, rooms, moments, caps = {}, {}, {}, {}
  for i, client in ipairs(clients) do names[i] = "client:" .. client end
  local values, are_paused = read_limits(q, clients)
  read_rates(q, names, values)
  for i, running in ipairs(redis.call("HMGET", q.running_counts, unpack(names))) do
    local text, rate = values[i], q.rates[names[i]]
    if caps[text] == nil then caps[text] = limit_of("max_running", text) or math.huge end
    rooms[i] = are_paused[i] and 0 or caps[text] - (running or 0)
    if rate and rooms[i] > 0 then
      rooms[i] = math.min(rooms[i], rate.room)
      moments[i] = rooms[i] <= 0 and next_start(q, rate) or nil
    end
  end
  return rooms, moments
end

-- How many more jobs the queue may start, and when it may start one if only its rate stops it.
local function queue_room(q)
  local values = values_of(redis.call("HGET", q.limits, "queue"))
  q.has_times = has_time_turns(values)
  local most = limit_of("max_running", values)
  local room = most and most - tonumber(redis.call("HGET", q.running_counts, "queue") or 0) or math.huge
  read_rates(q, { "queue" }, { values })
  local rate = q.rates.queue
  if not rate or room <= 0 then return room end
  return math.min(room, rate.room), rate.room <= 0 and next_start(q, rate) or nil
end

local FEW = 10 -- clients that are looked at

-- Whether nobody may start a job before another one ends, which signals work. Only a few clients are looked at.
local function is_full(q)
  if queue_room(q) <= 0 and not q.rates.queue then return true end
  local bands = redis.call("ZRANGE", q.bands, "0", "1")
  if #bands > 1 then return false end
  local clients = redis.call("ZRANGEBYSCORE", q.ring .. bands[1], "-inf", "(inf", "LIMIT", "0", FEW + 1)
  if #clients > FEW then return false end
  for i, room in ipairs((read_rooms(q, clients))) do
    if room > 0 or q.rates["client:" .. clients[i]] then return false end
  end
  return true
end
