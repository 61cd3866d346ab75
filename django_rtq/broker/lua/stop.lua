-- stop: settle jobs that were asked to stop, and did.
-- running -> cancelled
-- uses: _prelude _schedule _digests _waiting _keeping _outcomes
--
-- KEYS[1] running     hash  id -> attempt and claim time; the processing list of this worker
-- KEYS[2] jobs        hash  id -> record
-- KEYS[3] failures    hash  id -> runs that failed
-- KEYS[4] crashes     hash  id -> runs that took their worker down
-- KEYS[5] errors      hash  id -> the last failures
-- KEYS[6] since       hash  id -> waits since
-- KEYS[7] retrying    zset  id -> due
-- KEYS[8] results     hash  id -> ms to keep, outcome
-- KEYS[9] finished    zset  id -> when trim looks at it next
-- KEYS[10] sweep      hash  the highest time seen
-- KEYS[11] scratch    never exists; see the rules for scripts
-- KEYS[12] stats      + minute, hash  counters
-- KEYS[13] waiting    zset  id -> until when somebody waits for its end
-- KEYS[14] over       + id, list  a token for who waits
-- KEYS[15] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[16] progress   hash  id -> how far it is
-- KEYS[17] digests    hash  id -> until when, ms, digest, heir
-- KEYS[18] due        zset  token for schedulers
-- KEYS[19] scheduled  zset  id -> due
-- KEYS[20] unique     + digest, string  id of the job that holds it
-- KEYS[21] kept       zset  id -> when it finished; those of which an outcome is kept
-- KEYS[22] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[...] jobs      of each: id, ms to keep, outcome; at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, most, jobs = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }

local stale = end_runs(q, jobs, most, now_ms(q.sweep), "cancelled")
return stale
