-- ack: settle jobs that are done.
-- running -> succeeded
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
-- KEYS[15] scheduled  zset  id -> due
-- KEYS[16] due        zset  token for schedulers
-- KEYS[17] digests    hash  id -> until when, ms, digest, heir
-- KEYS[18] unique     + digest, string  id of the job that holds it
-- KEYS[19] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[20] progress   hash  id -> how far it is
-- KEYS[21] kept       zset  id -> when it finished; those of which an outcome is kept
-- KEYS[22] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[2] run_ms      how long these jobs ran, together
-- ARGV[3] wait_ms     how long they had waited, together
-- ARGV[...] jobs      of each: id, ms to keep, outcome ("": only the id); at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, most, run_ms, wait_ms = named(), tonumber(ARGV[1]), ARGV[2], ARGV[3]
local jobs = { select(4, unpack(ARGV)) }
local now = now_ms(q.sweep)

-- A worker that was given up for dead may still be alive and finish late.
-- By then its jobs were given to others, and they are not ours to settle.
local stale, ended = end_runs(q, jobs, most, now, "succeeded")
if ended > 0 then
  count(q.stats, now, "run_ms", run_ms)
  count(q.stats, now, "wait_ms", wait_ms)
end
return stale
