-- startable: since when the first job waits that might start, so none of a client that is paused or at its limits.
-- uses: lanes

local PART_OF_LANES, MOST_LANES = 30, 500 -- lanes that are looked at; then the clients that take turns are
local STARTABLE_LANES, IDS_OF_LANE = 30, 20 -- lanes, and ids of each, that are searched where jobs were cancelled

-- Of these lanes, with since when their first jobs wait: those of clients that may start a job.
local function startable_lanes(q, lanes, but)
  local fields, clients, found = {}, {}, {}
  for i = 1, #lanes, 2 do
    clients[#clients + 1] = string.match(lanes[i], "^[^:]*:(.*)$")
    fields[#fields + 1] = "paused:" .. clients[#clients]
  end
  if #clients == 0 then return found end
  local are_blocked = redis.call("HMGET", q.blocked, unpack(clients))
  local are_paused = redis.call("HMGET", q.limits, unpack(fields))
  for c, client in ipairs(clients) do
    if not are_blocked[c] and not are_paused[c] and client ~= but then
      found[#found + 1], found[#found + 2] = lanes[2 * c - 1], lanes[2 * c]
    end
  end
  return found
end

-- The lanes of those that take turns, some of each band. Who is blocked has the turn "inf".
local function lanes_in_rings(q)
  local lanes = {}
  for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, 9)) do
    for _, client in ipairs(redis.call("ZRANGEBYSCORE", q.ring .. band, "-inf", "(inf", "LIMIT", 0, PART_OF_LANES)) do
      local lane = band .. ":" .. client
      local since = redis.call("ZSCORE", q.lanes, lane)
      if since then lanes[#lanes + 1], lanes[#lanes + 2] = lane, since end
    end
  end
  return lanes
end

-- Since when the first job of a lane waits that was not cancelled, within the search depth; false: all of them were.
local function lane_waits_since(q, lane, of_first, now)
  local ids = redis.call("LRANGE", q.lane .. lane, 0, IDS_OF_LANE - 1)
  for i, id in ipairs(ids) do
    if redis.call("HEXISTS", q.jobs, id) == 1 then return i == 1 and tonumber(of_first) or waiting_since(q, id, now) end
  end
  if #ids < IDS_OF_LANE then return false end
end

-- The first of these lanes, by since when their first jobs wait. An estimate if all of them begin with cancelled jobs.
local function oldest_of(q, lanes, now)
  local oldest, first
  for i = 1, math.min(#lanes, 2 * STARTABLE_LANES), 2 do
    local since = lane_waits_since(q, lanes[i], lanes[i + 1], now)
    oldest = since and math.min(since, oldest or since) or oldest
    if since ~= false then first = math.min(tonumber(lanes[i + 1]), first or math.huge) end
  end
  oldest = oldest or first
  return oldest and string.format("%.0f", oldest)
end

-- Since when the first job waits that might start, but for those of the client `but`; nil: there is none.
local function oldest_startable(q, now, but)
  local are_exact = redis.call("EXISTS", q.cancelled_in_lane) == 0
  local are_all, found, place = not but and redis.call("EXISTS", q.limits) == 0, {}, 0
  local part
  repeat
    part = redis.call("ZRANGE", q.lanes, place, place + PART_OF_LANES - 1, "WITHSCORES")
    for _, value in ipairs(are_all and part or startable_lanes(q, part, but)) do found[#found + 1] = value end
    if are_exact and found[1] then return found[2] end
    place = place + PART_OF_LANES
  until #part < 2 * PART_OF_LANES or place >= MOST_LANES or #found >= 2 * STARTABLE_LANES
  if #found == 0 and place >= MOST_LANES then found = startable_lanes(q, lanes_in_rings(q), but) end
  return oldest_of(q, found, now)
end
