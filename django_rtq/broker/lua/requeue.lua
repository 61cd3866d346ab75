-- requeue: give dead letters a new life, with all their attempts.
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
-- ARGV[1] latest      deaths after this moment are not meant
-- ARGV[...] ids       at most 100
--
-- returns the ids that were queued; the others are not dead (any more), or another job holds their digest
-- sent twice: none is dead the second time, and nothing changes

local q, latest, ids = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local now, queued = now_ms(q.sweep), {}

redis.call("DEL", q.scratch) -- lets a full server be drained
for _, id in ipairs(ids) do
  if is_dead(q, id, latest) and revive(q, id, nil, now) then queued[#queued + 1] = id end
end
if #queued > 0 then count(q.stats, now, "requeued", #queued) end
return queued
