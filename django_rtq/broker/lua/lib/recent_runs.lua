-- recent_runs: which clients ran jobs in the last ten minutes, and how many. There are counters of ten minutes each: the
-- present ones count, and of the last ones the part that would lie in these ten minutes if it were spread out evenly.
-- uses: limits metrics

-- The keys of the counters: {runs, time, the part that counts} of the present ten minutes and of the last ones.
local function recent_slices(q, now)
  local slice = math.floor(now / SLICE_MS)
  local names = { string.format("%.0f", slice), string.format("%.0f", slice - 1) }
  return {
    { q.client_runs .. names[1], q.client_time .. names[1], 1 },
    { q.client_runs .. names[2], q.client_time .. names[2], 1 - (now - slice * SLICE_MS) / SLICE_MS },
  }
end

-- Runs and µs of all clients.
local function recent_totals(slices)
  local runs, us = 0, 0
  for _, slice in ipairs(slices) do
    local found = redis.call("HMGET", slice[1], ALL_RUNS, ALL_TIME)
    runs, us = runs + slice[3] * (found[1] or 0), us + slice[3] * (found[2] or 0)
  end
  return runs, us
end

-- Runs and µs of one client.
local function recent_runs(slices, client)
  local runs, us = 0, 0
  for _, slice in ipairs(slices) do
    runs = runs + slice[3] * (redis.call("HGET", slice[1], client) or 0)
    us = us + slice[3] * (redis.call("ZSCORE", slice[2], client) or 0)
  end
  return runs, us
end

-- The clients that ran jobs or that may start one now, at most 1,000 of the latter in each band: a list, and by name which
-- part of the ten minutes counts.
local function active_clients(q, slices)
  local clients, parts = {}, {}
  local function add(client, part)
    if client == ALL_TIME or client == ALL_RUNS or parts[client] then return end
    clients[#clients + 1], parts[client] = client, part
  end
  for _, client in ipairs(redis.call("HKEYS", slices[1][1])) do add(client, 1) end
  for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, 99)) do
    local able = redis.call("ZRANGEBYSCORE", q.ring .. band, "-inf", "(inf", "LIMIT", 0, 1000)
    for _, client in ipairs(able) do add(client, 1) end
  end
  for _, client in ipairs(redis.call("HKEYS", slices[2][1])) do add(client, slices[2][3]) end
  return clients, parts
end

-- The weights of these clients, each for its part of the ten minutes: by name, and their sum.
local function active_weights(q, clients, parts)
  local weights, sum = {}, 0
  local has_weights = redis.call("HEXISTS", q.limits, "weights") == 1
  for start = 1, #clients, 500 do
    local fields = { "clients" }
    for i = start, math.min(start + 499, #clients) do fields[#fields + 1] = "client:" .. clients[i] end
    local values = has_weights and redis.call("HMGET", q.limits, unpack(fields)) or {}
    for i = 2, #fields do
      local client = clients[start + i - 2]
      local weight = has_weights and limit_of("weight", values_of(values[i], values[1])) or 1
      weights[client] = weight * parts[client]
      sum = sum + weights[client]
    end
  end
  return weights, sum
end
