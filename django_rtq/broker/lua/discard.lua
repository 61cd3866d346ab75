-- discard: throw dead letters away.
-- dead -> gone
-- uses: _prelude _schedule _digests _waiting _outcomes
--
-- KEYS[1] dead        zset  id -> time of death
-- KEYS[2] jobs        hash  id -> record
-- KEYS[3] failures    hash  id -> runs that failed
-- KEYS[4] crashes     hash  id -> runs that took their worker down
-- KEYS[5] errors      hash  id -> the last failures
-- KEYS[6] since       hash  id -> waits since
-- KEYS[7] retrying    zset  id -> due
-- KEYS[8] sweep       hash  the highest time seen
-- KEYS[9] scratch     never exists; see the rules for scripts
-- KEYS[10] stats      + minute, hash  counters
-- KEYS[11] waiting    zset  id -> until when somebody waits for its end
-- KEYS[12] over       + id, list  a token for who waits
-- KEYS[13] scheduled  zset  id -> due
-- KEYS[14] due        zset  token for schedulers
-- KEYS[15] digests    hash  id -> until when, ms, digest, heir
-- KEYS[16] unique     + digest, string  id of the job that holds it
-- KEYS[17] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[18] progress   hash  id -> how far it is
-- KEYS[19] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] latest      deaths after this moment are not meant
-- ARGV[...] ids       at most 100
--
-- returns the ids that were thrown away; the others are not dead (any more)
-- sent twice: none is dead the second time, and nothing changes

local q, latest, ids = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local gone = {}

for i, died in ipairs(#ids > 0 and redis.call("ZMSCORE", q.dead, unpack(ids)) or {}) do
  if died and tonumber(died) <= latest then gone[#gone + 1] = ids[i] end
end
if #gone == 0 then return gone end
redis.call("DEL", q.scratch) -- lets a full server be drained
forget(q, gone)
redis.call("ZREM", q.dead, unpack(gone))
count(q.stats, now_ms(q.sweep), "discarded", #gone)
return gone
