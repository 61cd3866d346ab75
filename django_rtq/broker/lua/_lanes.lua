-- _lanes: how jobs get into the lanes of their clients.

local NEAR = 200 -- how deep a lane is searched for an id that a torn log may have left in it

-- When a job began to wait. Its id begins with the time it was made; where that is not it, `since` tells.
local function waiting_since(q, id, now)
  local noted = q.has_since ~= false and redis.call("HGET", q.since, id)
  return tonumber(noted or tonumber(string.sub(id, 1, 12), 16) or now)
end

-- Where a band stands among the others. "5+" holds the jobs of priority 5 that have waited for their time, in a queue
-- that serves these first: it lies just above "5".
local function rank(band)
  return tonumber(band) or tonumber(string.sub(band, 1, -2)) + 0.5
end

-- Say that clients have work. Always, and before they have: an index that is kept on an edge gets lost with it.
-- `lanes` is {band, client, since when its first job waits} each.
local function index_lanes(q, lanes)
  local turn, heads, rings = redis.call("INCRBY", q.turn, #lanes) - #lanes, {}, {}
  for i, lane in ipairs(lanes) do
    local band, client, since = unpack(lane)
    heads[#heads + 1], heads[#heads + 2] = since, band .. ":" .. client
    rings[band] = rings[band] or {}
    local places = rings[band]
    places[#places + 1], places[#places + 2] = turn + i, client
  end
  redis.call("ZADD", q.lanes, "NX", unpack(heads))
  for band, places in pairs(rings) do
    redis.call("ZADD", q.bands, rank(band), band)
    redis.call("ZADD", q.ring .. band, "NX", unpack(places))
  end
  redis.call("ZADD", q.wake, 0, "work")
end

-- Put a job where it is claimed next, unless it is there.
local function give_back(q, id, record, now)
  local band, client = header(record)
  local lane = q.lane .. band .. ":" .. client
  index_lanes(q, { { band, client, now } })
  if redis.call("LPOS", lane, id, "MAXLEN", NEAR) then return end
  redis.call("LPUSH", lane, id)
  redis.call("ZADD", q.lanes, waiting_since(q, id, now), band .. ":" .. client)
end

-- Put a job at the end of its client's lane; it waits from `since` on.
local function queue_up(q, id, record, since)
  local band, client = header(record)
  redis.call("HSET", q.since, id, since)
  index_lanes(q, { { band, client, since } })
  redis.call("RPUSH", q.lane .. band .. ":" .. client, id)
end
