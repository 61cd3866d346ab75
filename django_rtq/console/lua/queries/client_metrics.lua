-- client_metrics: clients with jobs in a queue, and their run time in the last hour. Reads only.
-- It reads some lanes, those whose first jobs have waited longest, and the clients with most run time.
-- uses: prelude metrics
-- keys: bands lanes clock lane client_runs client_time
-- ARGV[1] most        lanes to read, at most 2,000
-- ARGV[2] wanted      clients with most jobs, and with most run time in each ten minutes; at most 100
--
-- returns {now, lanes, µs of all, {client, queued, since when the first waits, runs, µs}, ...}
-- sent twice: changes nothing

local q, most, wanted = named(), tonumber(ARGV[1]), tonumber(ARGV[2])
local now, SLICES = now_ms(q.clock), 6
local clients, known, total, answer = {}, {}, 0, {}

local function find_or_add(name)
  if not known[name] then
    known[name] = { queued = 0, since = "", runs = 0, us = 0 }
    clients[#clients + 1] = name
  end
  return known[name]
end

local waiting = redis.call("ZRANGE", q.lanes, 0, most - 1, "WITHSCORES")
for i = 1, #waiting, 2 do
  local client = find_or_add(string.match(waiting[i], "^[^:]*:(.*)$"))
  client.queued = client.queued + redis.call("LLEN", q.lane .. waiting[i])
  if client.since == "" then client.since = waiting[i + 1] end
end
table.sort(clients, function(a, b) return known[a].queued > known[b].queued end)
for i = #clients, wanted + 1, -1 do known[clients[i]], clients[i] = nil, nil end

local bands = redis.call("ZRANGE", q.bands, 0, 99)
local slice = math.floor(now / SLICE_MS)
for each = slice - SLICES + 1, slice do
  for _, busy in ipairs(redis.call("ZREVRANGE", q.client_time .. string.format("%.0f", each), 0, wanted - 1)) do
    local client = not known[busy] and find_or_add(busy)
    for _, band in ipairs(client and bands or {}) do
      local lane = band .. ":" .. busy
      client.queued = client.queued + redis.call("LLEN", q.lane .. lane)
      client.since = client.since ~= "" and client.since or redis.call("ZSCORE", q.lanes, lane) or ""
    end
  end
end
for each = slice - SLICES + 1, slice do
  local name = string.format("%.0f", each)
  total = total + (redis.call("HGET", q.client_runs .. name, ALL_TIME) or 0)
  local runs = #clients > 0 and redis.call("HMGET", q.client_runs .. name, unpack(clients)) or {}
  local us = #clients > 0 and redis.call("ZMSCORE", q.client_time .. name, unpack(clients)) or {}
  for i, client in ipairs(clients) do
    known[client].runs, known[client].us = known[client].runs + (runs[i] or 0), known[client].us + (us[i] or 0)
  end
end
for i, client in ipairs(clients) do
  local one = known[client]
  answer[i] = { client, one.queued, one.since, one.runs, one.us }
end
return { now, redis.call("ZCARD", q.lanes), total, answer }
