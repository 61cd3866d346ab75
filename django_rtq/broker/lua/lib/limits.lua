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

-- Read what is asked for of `limits`; false: nothing. The hash is read whole while it has fewer fields.
local function read_fields(q, known, asked)
  if #asked > 8 and redis.call("HLEN", q.limits) <= #asked then
    for _, field in ipairs(asked) do known[field] = false end
    local all = redis.call("HGETALL", q.limits)
    for i = 1, #all, 2 do known[all[i]] = all[i + 1] end
  elseif #asked > 0 then
    for i, found in ipairs(redis.call("HMGET", q.limits, unpack(asked))) do known[asked[i]] = found end
  end
end

-- What the limits of these clients say, of each whether it is paused, and what those of all others say. A claim reads each
-- of them once.
local function read_limits(q, clients)
  local values, are_paused, known, asked = {}, {}, q.limits_read or {}, {}
  if known.clients == nil then asked[1] = "clients" end
  for _, client in ipairs(clients) do
    local own, pause = "client:" .. client, "paused:" .. client
    if known[own] == nil then asked[#asked + 1], asked[#asked + 2] = own, pause end
  end
  read_fields(q, known, asked)
  local default = values_of(nil, known.clients)
  for i, client in ipairs(clients) do
    local own = known["client:" .. client]
    values[i], are_paused[i] = own and values_of(own, known.clients) or default, known["paused:" .. client]
  end
  return values, are_paused, default
end

-- The weights of these clients, and at 0 that of all others.
local function read_weights(q, clients)
  local values, _, default = read_limits(q, clients)
  local weights, of = { [0] = limit_of("weight", default) or 1 }, {}
  for i, text in ipairs(values) do
    of[text] = of[text] or limit_of("weight", text) or weights[0]
    weights[i] = of[text]
  end
  return weights
end

-- How many jobs run of these: "queue" and "client:<name>". A script reads each number once, and add_running() keeps it.
local function read_running(q, members)
  local known, asked = q.counted or {}, {}
  q.counted = known
  for _, member in ipairs(members) do
    if not known[member] then asked[#asked + 1] = member end
  end
  for i, running in ipairs(#asked > 0 and redis.call("HMGET", q.running_counts, unpack(asked)) or {}) do
    known[asked[i]] = tonumber(running or 0)
  end
  return known
end

-- How many more jobs each of these clients may start, and when (ms) those may start one that only their rate stops.
local function read_rooms(q, clients)
  if #clients == 0 then return {}, {} end
  local names, rooms, moments, caps, capped = {}, {}, {}, {}, { "queue" } -- if they start jobs, it is counted too
  local values, are_paused = read_limits(q, clients)
  for i, text in ipairs(values) do
    names[i] = "client:" .. clients[i]
    caps[text] = caps[text] or limit_of("max_running", text) or math.huge
    if caps[text] < math.huge then capped[#capped + 1] = names[i] end
  end
  read_rates(q, names, values)
  local running = #capped > 1 and read_running(q, capped) or {}
  for i, name in ipairs(names) do
    local rate = q.rates[name]
    rooms[i] = are_paused[i] and 0 or caps[values[i]] - (running[name] or 0)
    if rate and rooms[i] > 0 then
      rooms[i] = math.min(rooms[i], rate.room)
      moments[i] = rooms[i] <= 0 and next_start(q, rate) or nil
    end
  end
  return rooms, moments
end

-- Read what a claim needs of `limits` in any case. Returns it by field.
local function read_limits_of_queue(q)
  local found = redis.call("HMGET", q.limits, "queue", "clients", "weights")
  return { queue = found[1], clients = found[2], weights = found[3] }
end

-- How many more jobs the queue may start, and when it may start one if only its rate stops it.
local function queue_room(q)
  local values = values_of((q.limits_read or read_limits_of_queue(q)).queue)
  q.has_times = has_time_turns(values)
  local most = limit_of("max_running", values)
  local room = most and most - read_running(q, { "queue" }).queue or math.huge
  read_rates(q, { "queue" }, { values })
  local rate = q.rates.queue
  if not rate or room <= 0 then return room end
  return math.min(room, rate.room), rate.room <= 0 and next_start(q, rate) or nil
end

local FEW = 10 -- clients that are looked at

-- Whether nobody may start a job before another one ends, which signals work. Only a few clients are looked at.
local function is_full(q)
  if queue_room(q) <= 0 and not q.rates.queue then return true end
  if q.has_room then return false end
  local bands = redis.call("ZRANGE", q.bands, "0", "1")
  if #bands > 1 then return false end
  local clients = redis.call("ZRANGEBYSCORE", q.ring .. bands[1], "-inf", "(inf", "LIMIT", "0", FEW + 1)
  if #clients > FEW then return false end
  for i, room in ipairs((read_rooms(q, clients))) do
    if room > 0 or q.rates["client:" .. clients[i]] then return false end
  end
  return true
end
