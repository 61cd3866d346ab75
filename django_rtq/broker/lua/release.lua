-- release: give jobs back unrun, to be claimed next; the attempt is not counted.
-- running -> queued; cancelled, if it was asked to stop
-- uses: _prelude _lanes _schedule _digests _waiting _keeping _outcomes _stopping
--
-- KEYS[1] running     hash  id -> attempt and claim time; the processing list of this worker
-- KEYS[2] jobs        hash  id -> record
-- KEYS[3] bands       zset  band -> priority
-- KEYS[4] turn        string  the last turn number
-- KEYS[5] lanes       zset  band:client -> since when its first job waits
-- KEYS[6] since       hash  id -> waits since
-- KEYS[7] wake        zset  token for workers
-- KEYS[8] sweep       hash  the highest time seen
-- KEYS[9] scratch     never exists; see the rules for scripts
-- KEYS[10] ring       + band, zset  client -> turn
-- KEYS[11] lane       + band:client, list  ids
-- KEYS[12] failures   hash  id -> runs that failed
-- KEYS[13] crashes    hash  id -> runs that took their worker down
-- KEYS[14] errors     hash  id -> the last failures
-- KEYS[15] retrying   zset  id -> due
-- KEYS[16] results    hash  id -> ms to keep, outcome
-- KEYS[17] finished   zset  id -> when trim looks at it next
-- KEYS[18] stats      + minute, hash  counters
-- KEYS[19] waiting    zset  id -> until when somebody waits for its end
-- KEYS[20] over       + id, list  a token for who waits
-- KEYS[21] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[22] progress   hash  id -> how far it is
-- KEYS[23] digests    hash  id -> until when, ms, digest, heir
-- KEYS[24] due        zset  token for schedulers
-- KEYS[25] scheduled  zset  id -> due
-- KEYS[26] unique     + digest, string  id of the job that holds it
-- KEYS[27] kept       zset  id -> when it finished; those of which an outcome is kept
-- KEYS[28] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[...] ids       in the order in which they were claimed; at most 500
--
-- returns the ids that were stale: no longer this worker's to give back
-- sent twice: every id is stale the second time, and nothing changes

local q, ids = named(), ARGV
local now = now_ms(q.sweep)
local mine, stale = held_by(q.running, ids, 1)
if #mine == 0 then return stale end

redis.call("DEL", q.scratch) -- lets a full server be drained
end_stopped(q, ids_at(ids, mine), now)
for place = #mine, 1, -1 do -- the first claimed comes to the front last
  local id = ids[mine[place]]
  local record = redis.call("HGET", q.jobs, id)
  if record then give_back(q, id, record, now, true) end
  redis.call("HDEL", q.running, id) -- last: a torn log may cost a second run, not a job
end
return stale
