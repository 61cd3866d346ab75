-- lane_fronts: what follows when ids leave a lane other than by a claim.
-- uses: lanes

local MOST_TRIMMED = 100 -- ids in one call

-- A client has no jobs left in a band. Those who come and go while nobody claims must not stay in its ring.
local function leave_ring(q, lane)
  local band, client = string.match(lane, "^([^:]*):(.*)$")
  local ring = q.ring .. band
  redis.call("ZREM", q.lanes, lane)
  if redis.call("ZSCORE", ring, client) == "inf" then return end -- blocked: until its limit lets it go on
  redis.call("ZREM", ring, client)
  if #redis.call("ZRANGEBYSCORE", ring, "-inf", "(inf", "LIMIT", 0, 1) == 0 then redis.call("ZREM", q.bands, band) end
end

-- Remove the ids of cancelled jobs from the front of a lane. Behind others they stay: finding them costs O(length), and whoever
-- walks a lane from its end relies on what it has seen.
local function trim_cancelled(q, lane, now)
  local key, trimmed = q.lane .. lane, 0
  local first = redis.call("LINDEX", key, 0)
  while first and trimmed < MOST_TRIMMED and redis.call("HEXISTS", q.jobs, first) == 0 do
    redis.call("HDEL", q.cancelled_in_lane, first) -- first: a torn log then leaves an id that claim skips
    redis.call("LPOP", key)
    first, trimmed = redis.call("LINDEX", key, 0), trimmed + 1
  end
  if not first then leave_ring(q, lane) end
  if first and trimmed > 0 then redis.call("ZADD", q.lanes, waiting_since(q, first, now), lane) end
end
