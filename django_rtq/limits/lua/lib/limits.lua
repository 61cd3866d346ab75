-- limits: how many jobs a queue, and each of its clients, may run at once and start in a time, and which clients are
-- paused. A claim that finds limits writes the client behind each entry of a processing list, and these jobs are counted
-- in `running_counts`.
-- created when first called
-- uses: prelude rates

-- The values of a client and those of each client, or of the queue.
local function values_of(own, default)
  return " " .. (own or "") .. " " .. (default or "")
end

-- Whether turns go by the time that jobs used, by the values of the queue.
local function has_time_turns(values)
  return value_of(values, "fair_by") == "seconds"
end

-- Read the fields of these clients and "clients" of `limits`. Returns them by name; nil or false: none. The hash is read whole
-- while it has fewer fields: then `has_own` and `has_pauses` say whether any client has one. A claim reads each field once.
local function read_fields(q, clients, members)
  local known, asked = q.limits_read or {}, {}
  local fields = known.has_own == nil and #clients > 4 and redis.call("HLEN", q.limits)
  if fields and fields <= 2 * #clients then
    local all = redis.call("HGETALL", q.limits)
    known.has_own, known.has_pauses = false, false
    for i = 1, #all, 2 do
      known[all[i]] = all[i + 1]
      known.has_own = known.has_own or string.find(all[i], "client:", 1, true) == 1
      known.has_pauses = known.has_pauses or string.find(all[i], "paused:", 1, true) == 1
    end
  end
  if known.has_own ~= nil then return known end
  if fields and fields > 32 and q.limits_read then use_table(q.limits) end -- not in a query
  if known.clients == nil then asked[1] = "clients" end
  for i, member in ipairs(members) do
    if known[member] == nil then asked[#asked + 1], asked[#asked + 2] = member, "paused:" .. clients[i] end
  end
  for i, found in ipairs(#asked > 0 and redis.call("HMGET", q.limits, unpack(asked)) or {}) do known[asked[i]] = found end
  return known
end

-- What these values say of running jobs and starts. A script reads each text once.
local function parse(q, values)
  local parsed = q.parsed or {}
  q.parsed = parsed
  if not parsed[values] then
    parsed[values] = { values = values, most = limit_of(values, "max_running") or math.huge, rate = rate_of(values) }
  end
  return parsed[values]
end

-- The limits of these clients, of each whether it is paused, and the limits of all others.
local function read_limits(q, clients, members)
  local limits, are_paused, known = {}, {}, read_fields(q, clients, members)
  local default = parse(q, values_of(nil, known.clients))
  local have_own, have_pauses = known.has_own ~= false, known.has_pauses ~= false
  for i = 1, #members do
    local own = have_own and known[members[i]]
    limits[i] = own and parse(q, values_of(own, known.clients)) or default
    if have_pauses then are_paused[i] = known["paused:" .. clients[i]] end
  end
  return limits, are_paused, default
end

-- The weights of these clients, and at 0 that of all others.
local function read_weights(q, clients)
  local limits, _, default = read_limits(q, clients, members_of(clients))
  local weights = { [0] = limit_of(default.values, "weight") or 1 }
  for i, of in ipairs(limits) do
    of.weight = of.weight or limit_of(of.values, "weight") or weights[0]
    weights[i] = of.weight
  end
  return weights
end

-- How many jobs run of the queue and of these clients. A script reads each number once, and add_running() keeps it.
local function read_running(q, members)
  local known, asked, n = q.counted or {}, {}, 0
  q.counted = known
  if not known.queue then
    asked[1], n = "queue", 1
  end
  for i = 1, #members do
    if not known[members[i]] then
      n = n + 1
      asked[n] = members[i]
    end
  end
  local found = n > 0 and redis.call("HMGET", q.running_counts, unpack(asked))
  for i = 1, n do known[asked[i]] = found[i] and tonumber(found[i]) or 0 end
  return known
end

-- How many more jobs each of these clients may start, and when (ms) those may start one that only their rate stops.
local function read_rooms(q, clients)
  if #clients == 0 then return {}, {} end
  local members, rooms, moments, capped, n = members_of(clients), {}, {}, {}, 0
  local limits, are_paused = read_limits(q, clients, members)
  for i = 1, #members do
    if limits[i].most < math.huge then
      n = n + 1
      capped[n] = members[i]
    end
  end
  local running = n > 0 and read_running(q, capped) or {}
  read_rates(q, members, limits)
  for i = 1, #members do
    local member, of = members[i], limits[i]
    local room = are_paused[i] and 0 or of.most - (running[member] or 0)
    if of.rate and room > 0 then
      room = math.min(room, q.times_ahead[member] and rate_room(q, member) or of.rate.burst)
      moments[i] = room <= 0 and next_start(q, member) or nil
    end
    rooms[i] = room
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
  local limits = parse(q, values)
  local room = limits.most < math.huge and limits.most - read_running(q, {}).queue or math.huge
  read_rates(q, { "queue" }, { limits })
  if not limits.rate or room <= 0 then return room end
  local rate = rate_room(q, "queue")
  return math.min(room, rate), rate <= 0 and next_start(q, "queue") or nil
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
  local members = members_of(clients)
  for i, room in ipairs((read_rooms(q, clients))) do
    if room > 0 or q.rates[members[i]] then return false end
  end
  return true
end
