-- audit: look at some lanes and put right what a torn log bent: a lane with jobs that is in no ring.
-- uses: _prelude _lanes
--
-- KEYS[1] bands       zset  band -> priority
-- KEYS[2] turn        string  the last turn number
-- KEYS[3] lanes       zset  band:client -> since when its first job waits
-- KEYS[4] since       hash  id -> waits since
-- KEYS[5] wake        zset  token for workers
-- KEYS[6] sweep       hash  the highest time seen
-- KEYS[7] scratch     never exists; see the rules for scripts
-- KEYS[8] ring        + band, zset  client -> turn
-- KEYS[9] lane        + band:client, list  ids
-- ARGV[1] start       how many lanes to pass over
-- ARGV[2] limit       lanes to look at in this call, at most 100
--
-- returns where to start next, or 0: all were seen
-- sent twice: there is nothing left to put right

local q, start, limit = named(), tonumber(ARGV[1]), tonumber(ARGV[2])
local now = now_ms(q.sweep)
local lanes = redis.call("ZRANGE", q.lanes, start, start + limit - 1)
local removed = 0

redis.call("DEL", q.scratch) -- lets a full server be drained
for _, lane in ipairs(lanes) do
  local band, client = string.match(lane, "^(%-?%d+%+?):(.*)$")
  local first = redis.call("LINDEX", q.lane .. lane, 0)
  if first then
    if not redis.call("ZSCORE", q.ring .. band, client) then index_lane(q, band, client, now) end
    redis.call("ZADD", q.bands, rank(band), band)
    redis.call("ZADD", q.lanes, waiting_since(q, first, now), lane)
  else
    redis.call("ZREM", q.lanes, lane)
    removed = removed + 1
  end
end
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.wake, 0, "work") end
return #lanes < limit and 0 or start + limit - removed
