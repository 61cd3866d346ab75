-- reclaim: take back the jobs of workers whose lease ran out. Each of them counts as a crash.
-- running -> queued, or dead; cancelled, if it was asked to stop
-- uses: _prelude _contact _lanes _schedule _digests _waiting _keeping _outcomes _stopping _failures _figures _crashes _reclaiming
--
-- KEYS[1] workers     zset  worker -> lease deadline
-- KEYS[2] sweep       hash  contact, hold, high, anchor
-- KEYS[3] jobs        hash  id -> record
-- KEYS[4] bands       zset  band -> priority
-- KEYS[5] turn        string  the last turn number
-- KEYS[6] lanes       zset  band:client -> since when its first job waits
-- KEYS[7] since       hash  id -> waits since
-- KEYS[8] failures    hash  id -> runs that failed
-- KEYS[9] crashes     hash  id -> runs that took their worker down
-- KEYS[10] errors     hash  id -> the last failures
-- KEYS[11] dead       zset  id -> time of death
-- KEYS[12] wake       zset  token for workers
-- KEYS[13] scratch    never exists; see the rules for scripts
-- KEYS[14] stats      + minute, hash  counters
-- KEYS[15] ring       + band, zset  client -> turn
-- KEYS[16] lane       + band:client, list  ids
-- KEYS[17] running    + worker, hash  id -> attempt and claim time
-- KEYS[18] waiting    zset  id -> until when somebody waits for its end
-- KEYS[19] over       + id, list  a token for who waits
-- KEYS[20] scheduled  zset  id -> due
-- KEYS[21] retrying   zset  id -> due; those of scheduled that have failed
-- KEYS[22] due        zset  token for schedulers
-- KEYS[23] digests    hash  id -> until when, ms, digest, heir
-- KEYS[24] unique     + digest, string  id of the job that holds it
-- KEYS[25] results    hash  id -> ms to keep, outcome
-- KEYS[26] finished   zset  id -> when trim looks at it next
-- KEYS[27] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[28] progress   hash  id -> how far it is
-- KEYS[29] holders   zset  worker -> when it signed on; who may have a processing list
-- KEYS[30] tasks      + hour, hash  counters
-- KEYS[31] kept       zset  id -> when it finished; those of which an outcome is kept
-- KEYS[32] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] lease_ms    of the caller: a silence of more than half of it is an outage
-- ARGV[2] limit       jobs to take back in this call, at most 50
--
-- returns {ms until there may be more to do, or -1; id, "queued", "dead" or "cancelled", ...}
-- sent twice: goes on where the first call stopped

local q, lease_ms, limit = named(), tonumber(ARGV[1]), tonumber(ARGV[2])

redis.call("DEL", q.scratch) -- lets a full server be drained
local now = contact(q, lease_ms)
local hold = tonumber(redis.call("HGET", q.sweep, "hold") or 0)
if now < hold then return { hold - now } end

local answer = { -1 }
for _, worker in ipairs(redis.call("ZRANGEBYSCORE", q.workers, "-inf", now, "LIMIT", 0, 10)) do
  local todo = limit - (#answer - 1) / 2
  local left = take_back(q, worker, function() return true end, todo, now, answer)
  if left == 0 then forget_worker(q, worker) end
end
local earliest = redis.call("ZRANGE", q.workers, 0, 0, "WITHSCORES")[2]
if earliest then answer[1] = math.max(0, earliest - now) end
return answer
