-- purge: throw away jobs that wait, of every client, and those that are scheduled.
-- queued, scheduled, retrying -> gone
-- uses: _prelude _schedule _digests _waiting _outcomes
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] scheduled   zset  id -> due
-- KEYS[3] lanes       zset  band:client -> since when its first job waits
-- KEYS[4] ghosts      hash  id -> lane; cancelled, but still named in a lane
-- KEYS[5] failures    hash  id -> runs that failed
-- KEYS[6] crashes     hash  id -> runs that took their worker down
-- KEYS[7] errors      hash  id -> the last failures
-- KEYS[8] since       hash  id -> waits since
-- KEYS[9] retrying    zset  id -> due
-- KEYS[10] sweep      hash  the highest time seen
-- KEYS[11] scratch    never exists; see the rules for scripts
-- KEYS[12] stats      + minute, hash  counters
-- KEYS[13] lane       + band:client, list  ids
-- KEYS[14] waiting    zset  id -> until when somebody waits for its end
-- KEYS[15] over       + id, list  a token for who waits
-- KEYS[16] due        zset  token for schedulers
-- KEYS[17] digests    hash  id -> until when, ms, digest, heir
-- KEYS[18] unique     + digest, string  id of the job that holds it
-- KEYS[19] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[20] progress   hash  id -> how far it is
-- KEYS[21] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] limit       jobs in this call, at most 100
--
-- returns {how many were thrown away, how many were looked at}; {0, 0}: none is left
-- sent twice: goes on where the first call stopped

local q, limit = named(), tonumber(ARGV[1])
local ids = redis.call("ZRANGE", q.scheduled, 0, limit - 1)
local lane = #ids == 0 and redis.call("ZRANGE", q.lanes, 0, 0)[1]
if lane then ids = redis.call("LRANGE", q.lane .. lane, 0, limit - 1) end

local thrown, of_clients = 0, {}
for i, record in ipairs(#ids > 0 and not lane and redis.call("HMGET", q.jobs, unpack(ids)) or {}) do
  local _, client = header(record or "")
  of_clients[client] = of_clients[client] or {}
  table.insert(of_clients[client], ids[i])
end
redis.call("DEL", q.scratch) -- lets a full server be drained
if #ids > 0 then
  -- The jobs first: what a torn log leaves is an id without a record, which claim passes over.
  thrown = forget(q, ids)
  redis.call("HDEL", q.ghosts, unpack(ids))
  for client, of_client in pairs(of_clients) do unschedule(q, client, of_client) end
  count(q.stats, now_ms(q.sweep), "purged", thrown)
end
if lane then
  redis.call("LTRIM", q.lane .. lane, #ids, -1)
  if redis.call("EXISTS", q.lane .. lane) == 0 then redis.call("ZREM", q.lanes, lane) end
end
return { thrown, #ids > 0 and #ids or (lane and 1 or 0) }
