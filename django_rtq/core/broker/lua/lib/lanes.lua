-- lanes: put jobs into the lanes of their clients, take them out other than by a claim, and keep the indexes of lanes.
-- uses: prelude

local NEAR = 200 -- search depth for an id that a torn log may have left in a lane

-- Since when a job waits: `waiting_since` says, or else its id, which starts with the time at which it was made.
local function waiting_since(q, id, now)
  local noted = q.has_waiting_since ~= false and redis.call("HGET", q.waiting_since, id)
  return tonumber(noted or tonumber(string.sub(id, 1, 12), 16) or now)
end

-- The score of a band among the others. "5+" holds the jobs of priority 5 that have waited for their time, in a queue
-- that serves these first: it lies just above "5".
local function rank(band)
  return tonumber(band) and band or tonumber(string.sub(band, 1, -2)) + 0.5
end

-- Enter a client with work into all indexes, before the push. A client is written into the ring last and removed from it
-- first: while it is there, its band is known as well. Whether its lane was empty says nothing after a torn log.
-- A client with the turn "inf" is blocked, see limits, and wakes nobody.
local function index_lane(q, band, client, since)
  local ring = q.ring .. band
  local is_new = redis.call("ZADD", q.lanes, "NX", since, band .. ":" .. client) == 1
  local turn = not is_new and redis.call("ZSCORE", ring, client)
  if turn == "inf" then return end
  if not turn then
    redis.call("ZADD", q.bands, rank(band), band)
    redis.call("ZADD", ring, "NX", redis.call("INCR", q.turn), client)
  end
  redis.call("ZADD", q.work_signal, "0", "work")
end

-- Put a job at the front of its lane, unless it is there. If it did not run, its client gets its turn back.
local function push_front(q, id, record, now, is_unrun)
  local band, client = read_header(record)
  local lane = q.lane .. band .. ":" .. client
  index_lane(q, band, client, now)
  if is_unrun then -- ahead of all other clients of its band
    local first = redis.call("ZRANGE", q.ring .. band, 0, 0, "WITHSCORES")
    if first[1] ~= client and redis.call("ZSCORE", q.ring .. band, client) ~= "inf" then
      redis.call("ZADD", q.ring .. band, first[2] - 1, client)
    end
  end
  if redis.call("LPOS", lane, id, "MAXLEN", NEAR) then return end
  redis.call("LPUSH", lane, id)
  redis.call("ZADD", q.lanes, waiting_since(q, id, now), band .. ":" .. client)
end

-- Append a job to its client's lane; it waits since `since`.
local function push_back(q, id, record, since)
  local band, client = read_header(record)
  redis.call("HSET", q.waiting_since, id, since)
  index_lane(q, band, client, since)
  redis.call("RPUSH", q.lane .. band .. ":" .. client, id)
end

-- Remove the ids of cancelled jobs from the front of a lane, so many at most. Behind others they stay: finding them costs
-- O(length), and whoever walks a lane from its end relies on what it has seen. Returns the id that is first then, and how many.
local function skip_cancelled(q, lane, most, now)
  local key = q.lane .. lane
  local first = redis.call("LINDEX", key, 0)
  if not first or redis.call("HEXISTS", q.jobs, first) == 1 then return first, 0 end
  local behind, passed = redis.call("LRANGE", key, 1, most), { first }
  while #passed < most and behind[#passed] and redis.call("HEXISTS", q.jobs, behind[#passed]) == 0 do
    passed[#passed + 1] = behind[#passed]
  end
  redis.call("HDEL", q.cancelled_in_lane, unpack(passed)) -- first: a torn log then leaves ids that claim skips
  redis.call("LTRIM", key, #passed, -1)
  first = behind[#passed]
  if first then redis.call("ZADD", q.lanes, waiting_since(q, first, now), lane) end
  return first, #passed
end

-- The same without a claim. Clients that come and go while nobody claims must not stay in a ring.
local function trim_cancelled(q, band, client, now)
  local lane, ring = band .. ":" .. client, q.ring .. band
  if skip_cancelled(q, lane, 100, now) then return end
  redis.call("ZREM", q.lanes, lane)
  if redis.call("ZSCORE", ring, client) == "inf" then return end -- blocked: until its limit lets it go on
  redis.call("ZREM", ring, client)
  if #redis.call("ZRANGEBYSCORE", ring, "-inf", "(inf", "LIMIT", 0, 1) == 0 then redis.call("ZREM", q.bands, band) end
end
