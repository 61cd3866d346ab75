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

local MOST = 500 -- clients that are looked at; of more, this many stand for all

-- The weights of these clients.
local function weights_of(q, clients)
  if redis.call("HEXISTS", q.limits, "weights") == 1 then return read_weights(q, clients) end
  local weights = {}
  for i = 1, #clients do weights[i] = 1 end
  return weights
end

-- Which part of the ten minutes counts for a client: whether it ran jobs, or may start one now.
local function active_part(q, slices, bands, client)
  if redis.call("HEXISTS", slices[1][1], client) == 1 then return 1 end
  for _, band in ipairs(bands) do
    local turn = redis.call("ZSCORE", q.ring .. band, client)
    if turn and turn ~= "inf" then return 1 end
  end
  return redis.call("HEXISTS", slices[2][1], client) * slices[2][3]
end

-- The weights of all clients that ran jobs or may start one now, together, each for its part of the ten minutes.
local function active_weight(q, slices, bands)
  local known, sum = { [ALL_TIME] = true, [ALL_RUNS] = true }, 0
  local function add(clients, n, part)
    if #clients == 0 then return end
    local is_present = part and redis.call("HMGET", slices[1][1], unpack(clients)) or {}
    for i, weight in ipairs(weights_of(q, clients)) do
      if not known[clients[i]] and not is_present[i] then sum = sum + weight * (part or 1) * n / #clients end
      known[clients[i]] = true
    end
  end
  local function add_slice(key, part)
    local n = redis.call("HLEN", key)
    add(n > MOST and redis.call("HRANDFIELD", key, MOST) or redis.call("HKEYS", key), n, part)
  end
  add_slice(slices[1][1])
  for _, band in ipairs(bands) do
    local able = redis.call("ZRANGEBYSCORE", q.ring .. band, "-inf", "(inf", "LIMIT", 0, MOST)
    add(able, #able == MOST and redis.call("ZCOUNT", q.ring .. band, "-inf", "(inf") or #able, 1)
  end
  add_slice(slices[2][1], slices[2][3])
  return sum
end
