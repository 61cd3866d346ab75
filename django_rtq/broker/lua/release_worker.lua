-- release_worker: take back the jobs of one worker whose lease is over, because a person says so.
-- running -> queued, or dead; cancelled, if it was asked to stop
-- uses: _prelude _lanes _schedule _digests _waiting _keeping _outcomes _stopping _failures _figures _crashes _reclaiming
--
-- KEYS[1] workers     zset  worker -> lease deadline
-- KEYS[2] sweep       hash  the highest time seen
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
-- KEYS[25] finished   zset  id -> when trim looks at it next
-- KEYS[26] progress   hash  id -> how far it is
-- KEYS[27] results    hash  id -> ms to keep, outcome
-- KEYS[28] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[29] holders   zset  worker -> when it signed on; who may have a processing list
-- KEYS[30] tasks      + hour, hash  counters
-- KEYS[31] kept       zset  id -> when it finished; those of which an outcome is kept
-- KEYS[32] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] worker      its name
-- ARGV[2] limit       jobs to take back in this call, at most 500
--
-- returns {"alive" while its lease lasts, else "released" or "unknown"; how many are left to take back; id, "queued",
--         "dead" or "cancelled", ...}
-- sent twice: goes on where the first call stopped

local q, worker, limit = named(), ARGV[1], tonumber(ARGV[2])
local now, deadline = now_ms(q.sweep), redis.call("ZSCORE", q.workers, worker)

if not deadline then return { "unknown", 0 } end
if tonumber(deadline) > now then return { "alive", 0 } end
local answer = { "released", 0 }
redis.call("DEL", q.scratch) -- lets a full server be drained
-- It may have been running any of them, as in reclaim.
answer[2] = take_back(q, worker, function() return true end, limit, now, answer)
if answer[2] == 0 then forget_worker(q, worker) end
return answer
