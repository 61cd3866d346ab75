-- requeue_changed: give a dead letter a new life, with all its attempts and other arguments.
-- dead -> queued
-- uses: _prelude _lanes _schedule _digests _runners _unique _reviving
--
-- KEYS[1] dead        zset  id -> time of death
-- KEYS[2] jobs        hash  id -> record
-- KEYS[3] failures    hash  id -> runs that failed
-- KEYS[4] crashes     hash  id -> runs that took their worker down
-- KEYS[5] bands       zset  band -> priority
-- KEYS[6] turn        string  the last turn number
-- KEYS[7] lanes       zset  band:client -> since when its first job waits
-- KEYS[8] since       hash  id -> waits since
-- KEYS[9] wake        zset  token for workers
-- KEYS[10] sweep      hash  the highest time seen
-- KEYS[11] scratch    never exists; see the rules for scripts
-- KEYS[12] stats      + minute, hash  counters
-- KEYS[13] ring       + band, zset  client -> turn
-- KEYS[14] lane       + band:client, list  ids
-- KEYS[15] digests    hash  id -> until when, ms, digest, heir
-- KEYS[16] unique     + digest, string  id of the job that holds it
-- KEYS[17] workers    zset  worker -> lease deadline
-- KEYS[18] running    + worker, hash  id -> attempt and claim time
-- KEYS[19] scheduled  zset  id -> due
-- KEYS[20] retrying   zset  id -> due; those of scheduled that have failed
-- ARGV[1] latest      a death after this moment is not the one that is meant
-- ARGV[2] id          the job
-- ARGV[3] body        what comes after the header of its record from now on
--
-- returns "queued", or "elsewhere": it is not dead (any more), has died anew, or another job holds its digest
-- sent twice: "elsewhere", and nothing changes

local q, latest, id, body = named(), tonumber(ARGV[1]), ARGV[2], ARGV[3]
local now = now_ms(q.sweep)

if not is_dead(q, id, latest) then return "elsewhere" end
redis.call("DEL", q.scratch) -- lets a full server be drained
if not revive(q, id, body, now) then return "elsewhere" end
count(q.stats, now, "requeued", 1)
return "queued"
