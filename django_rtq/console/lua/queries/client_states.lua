-- client_states: what is stored about some clients of a queue, in the form in which commands would tell it. Reads only.
-- uses: prelude limits metrics waiting
-- ARGV[1] most        so many lanes are searched for the clients with most jobs; "0": the clients are named; "-1": so they
--                     are, and no weights are told
-- ARGV[2] wanted      how many of these, and with most run time in each ten minutes
-- ARGV[...] clients   their names, at most 50
--
-- returns {now, the weights of all clients that ran jobs in these twenty minutes, or may start one now, together, each for
--         its part of the last ten minutes, or "0", the numbers of jobs in their lanes and then of their
--         scheduled jobs}, and the replies to the commands of QueueClients

local q, most, wanted, clients = named(), tonumber(ARGV[1]), tonumber(ARGV[2]), { unpack(ARGV, 3) }
local now = now_ms(q.clock)
local slice = math.floor(now / SLICE_MS)
local present, last = string.format("%.0f", slice), string.format("%.0f", slice - 1)
local runs, last_runs = q.client_runs .. present, q.client_runs .. last
local MOST = 500 -- clients that are looked at for the weights; of more, this many stand for all

local function choose()
  local queued = {}
  for _, lane in ipairs(redis.call("ZRANGE", q.lanes, 0, most - 1)) do
    local client = string.match(lane, "^[^:]*:(.*)$")
    if not queued[client] then clients[#clients + 1] = client end
    queued[client] = (queued[client] or 0) + redis.call("LLEN", q.lane .. lane)
  end
  table.sort(clients, function(a, b) return queued[a] > queued[b] end)
  for i = #clients, wanted + 1, -1 do queued[clients[i]], clients[i] = nil, nil end
  for _, name in ipairs({ present, last }) do
    for _, client in ipairs(redis.call("ZREVRANGE", q.client_time .. name, 0, wanted - 1)) do
      if not queued[client] then queued[client], clients[#clients + 1] = 0, client end
    end
  end
end

-- The weights of all clients that had work.
local function active_weight()
  local known, sum = { [ALL_TIME] = true, [ALL_RUNS] = true }, 0
  local has_weights = redis.call("HEXISTS", q.limits, "weights") == 1
  local function add(names, n, part)
    if #names == 0 then return end
    local weights = has_weights and read_weights(q, names) or {}
    local is_present = part < 1 and redis.call("HMGET", runs, unpack(names)) or {}
    for i, name in ipairs(names) do
      if not known[name] and not is_present[i] then sum = sum + (weights[i] or 1) * part * n / #names end
      known[name] = true
    end
  end
  local function add_runs(key, part)
    local n = redis.call("HLEN", key)
    add(n > MOST and redis.call("HRANDFIELD", key, MOST) or redis.call("HKEYS", key), n, part)
  end
  add_runs(runs, 1)
  for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, 99)) do
    local able = redis.call("ZRANGEBYSCORE", q.ring .. band, "-inf", "(inf", "LIMIT", 0, MOST)
    add(able, #able == MOST and redis.call("ZCOUNT", q.ring .. band, "-inf", "(inf") or #able, 1)
  end
  add_runs(last_runs, 1 - (now - slice * SLICE_MS) / SLICE_MS)
  return string.format("%.9f", sum)
end

-- Those of these names that have a value, each with it.
local function with_values(names, values)
  local found = {}
  for i, value in ipairs(values) do
    if value then found[#found + 1], found[#found + 2] = names[i], value end
  end
  return found
end

local function fields(key, names) return #names > 0 and with_values(names, redis.call("HMGET", key, unpack(names))) or {} end
local function scores(key, names) return #names > 0 and with_values(names, redis.call("ZMSCORE", key, unpack(names))) or {} end
local function scanned(key, names) return { "0", fields(key, names) } end

-- When the queue and these clients may start a job, where only their rates keep them from it.
local function next_starts(members)
  local _, of_queue = queue_room(q)
  local _, moments = read_rooms(q, clients)
  local found = of_queue and { "queue", of_queue } or {}
  for i, moment in pairs(moments) do found[#found + 1], found[#found + 2] = members[i + 1], moment end
  return found
end

if most > 0 then choose() end
local has_run = most == 0 and redis.call("EXISTS", runs, last_runs) > 0
local lanes, counts, totals = {}, {}, { ALL_TIME, ALL_RUNS, unpack(clients) }
local limits, members, sources = { "queue", "clients", "weights" }, { "queue" }, { "run:queue", "run:clients" }
for i, client in ipairs(clients) do
  members[i + 1], sources[i + 2] = "client:" .. client, "run:client:" .. client
  limits[2 * i + 2], limits[2 * i + 3] = members[i + 1], "paused:" .. client
  for _, band in ipairs(bands_of(q, client)) do lanes[#lanes + 1] = band .. ":" .. client end
end
lanes = scores(q.lanes, lanes)
for i = 1, #lanes, 2 do counts[#counts + 1] = redis.call("LLEN", q.lane .. lanes[i]) end
for _, client in ipairs(clients) do counts[#counts + 1] = redis.call("ZCARD", q.scheduled_by_client .. ":" .. client) end
return {
  { now, has_run and active_weight() or "0", counts },
  { lanes, 0, clients, scanned(q.limits, limits), scanned(q.limit_sources, sources), scanned(q.running_counts, members),
    scanned(q.blocked, clients), next_starts(members), redis.call("HGET", q.paused, "queue") or "",
    fields(runs, totals), fields(last_runs, totals), scores(q.client_time .. present, clients),
    scores(q.client_time .. last, clients) },
}
