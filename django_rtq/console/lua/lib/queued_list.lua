-- queued_list: list queued jobs by band, client and lane, in the order of turns.
-- uses: lanes waiting

local LANES_AT_ONCE, SHIFT = 200, 2000

-- The position in a lane behind the job that was at `place` when it was read. Jobs leave lanes at the front, so this looks
-- up to SHIFT places around it. If more have left, some jobs are passed over. If the job has left, all before it have, too.
local function behind(lane, id, place)
  local from = math.max(0, place - SHIFT)
  local ids = redis.call("LRANGE", lane, from, place + SHIFT)
  for i, each in ipairs(ids) do
    if each == id then return from + i end
  end
  return from
end

-- The bands with jobs. Those in which all clients are blocked are not in `bands`: of these it finds the ones of the lanes
-- that wait longest.
local function read_bands(q)
  local bands, known = redis.call("ZRANGE", q.bands, 0, -1), {}
  if redis.call("EXISTS", q.blocked) == 0 then return bands end
  for _, each in ipairs(bands) do known[each] = true end
  for _, each in ipairs(redis.call("ZRANGE", q.lanes, 0, 999)) do
    local name = string.match(each, "^[^:]*")
    if not known[name] then bands[#bands + 1], known[name] = name, true end
  end
  return bands
end

-- The clients of a ring and their turns: the first ones, or those behind a client. Others may have its turn, too.
local function read_ring(ring, client, turn)
  if not client then return redis.call("ZRANGE", ring, 0, LANES_AT_ONCE - 1, "WITHSCORES") end
  if redis.call("ZSCORE", ring, client) == turn then
    local after = redis.call("ZRANK", ring, client) + 1
    return redis.call("ZRANGE", ring, after, after + LANES_AT_ONCE - 1, "WITHSCORES")
  end
  return redis.call("ZRANGEBYSCORE", ring, "(" .. turn, "+inf", "WITHSCORES", "LIMIT", 0, LANES_AT_ONCE)
end

-- List up to `wanted` jobs behind `at`: {band, turn, client, id, place} of the last job that was seen, with an empty band at
-- the beginning. With `alone` only those of this client. Returns "more" or "all", and the place of each: see read_list().
local function list_queued(q, at, wanted, alone)
  local band, turn, client = at[1], at[2], at[3]
  local places, status, lanes = { behind = { band, turn, client, "", "0" } }, "all", 0

  local function walk(of_band, of_turn, of_client, start)
    local ids = redis.call("LRANGE", q.lane .. of_band .. ":" .. of_client, start, start + wanted - #places - 1)
    for i, id in ipairs(ids) do
      local place = string.format("%.0f", start + i - 1)
      places[#places + 1] = { of_band, of_turn, of_client, id, place, id = id, is_queued = true }
    end
    places.behind = { of_band, of_turn, of_client, "", string.format("%.0f", start) }
    lanes = lanes + 1
    if #places >= wanted or lanes >= LANES_AT_ONCE then status = "more" end
    return status == "more"
  end

  local function walk_ring(of_band, last_client, last_turn)
    if alone then return walk(of_band, "0", client, 0) end
    local ring = read_ring(q.ring .. of_band, last_client, last_turn)
    for i = 1, #ring, 2 do
      local is_seen = of_band == band and ring[i] == client -- it was served meanwhile, and got a later turn
      if not is_seen and walk(of_band, ring[i + 1], ring[i], 0) then return true end
    end
    return #ring == 2 * LANES_AT_ONCE
  end

  if band ~= "" then
    local start = behind(q.lane .. band .. ":" .. client, at[4], tonumber(at[5]))
    if walk(band, turn, client, start) or (not alone and walk_ring(band, client, turn)) then return status, places end
  end
  local bands = alone and bands_of(q, client) or read_bands(q)
  table.sort(bands, function(a, b) return tonumber(rank(a)) > tonumber(rank(b)) end)
  for _, each in ipairs(bands) do
    local is_left = band == "" or tonumber(rank(each)) < tonumber(rank(band))
    if is_left and walk_ring(each) then break end
  end
  return status, places
end
