-- lanes: how jobs get into the lanes of their clients.
-- uses: prelude

local NEAR = 200 -- how deep a lane is searched for an id that a torn log may have left in it

-- When a job began to wait. Its id begins with the time it was made; where that is not it, `since` tells.
local function waiting_since(q, id, now)
  local noted = q.has_waiting_since ~= false and redis.call("HGET", q.waiting_since, id)
  return tonumber(noted or tonumber(string.sub(id, 1, 12), 16) or now)
end

-- Where a band stands among the others. "5+" holds the jobs of priority 5 that have waited for their time, in a queue
-- that serves these first: it lies just above "5".
local function rank(band)
  return tonumber(band) and band or tonumber(string.sub(band, 1, -2)) + 0.5
end

-- Say that a client has work, since when. Always, and before it has: an index that is kept on an edge gets lost with it.
local function index_lane(q, band, client, since)
  redis.call("ZADD", q.lanes, "NX", since, band .. ":" .. client)
  redis.call("ZADD", q.bands, rank(band), band)
  redis.call("ZADD", q.ring .. band, "NX", redis.call("INCR", q.turn), client)
  redis.call("ZADD", q.work_signal, 0, "work")
end

-- Put a job where it is claimed next, unless it is there. When it was not run, its client has not had its turn.
local function push_front(q, id, record, now, is_unrun)
  local band, client = read_header(record)
  local lane = q.lane .. band .. ":" .. client
  index_lane(q, band, client, now)
  if is_unrun then -- before all others of its band
    local first = redis.call("ZRANGE", q.ring .. band, 0, 0, "WITHSCORES")
    if first[1] ~= client then redis.call("ZADD", q.ring .. band, first[2] - 1, client) end
  end
  if redis.call("LPOS", lane, id, "MAXLEN", NEAR) then return end
  redis.call("LPUSH", lane, id)
  redis.call("ZADD", q.lanes, waiting_since(q, id, now), band .. ":" .. client)
end

-- Put a job at the end of its client's lane; it waits from `since` on.
local function push_back(q, id, record, since)
  local band, client = read_header(record)
  redis.call("HSET", q.waiting_since, id, since)
  index_lane(q, band, client, since)
  redis.call("RPUSH", q.lane .. band .. ":" .. client, id)
end
