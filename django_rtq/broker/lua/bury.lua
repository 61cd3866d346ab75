-- bury: give jobs up. They stay as dead letters until a person requeues or discards them.
-- running -> dead; cancelled, if it was asked to stop
-- uses: _prelude _schedule _digests _waiting _keeping _outcomes _stopping _failures
--
-- KEYS[1] running     hash  id -> attempt and claim time; the processing list of this worker
-- KEYS[2] jobs        hash  id -> record
-- KEYS[3] failures    hash  id -> runs that failed
-- KEYS[4] errors      hash  id -> the last failures
-- KEYS[5] dead        zset  id -> time of death
-- KEYS[6] sweep       hash  the highest time seen
-- KEYS[7] scratch     never exists; see the rules for scripts
-- KEYS[8] stats       + minute, hash  counters
-- KEYS[9] waiting     zset  id -> until when somebody waits for its end
-- KEYS[10] over       + id, list  a token for who waits
-- KEYS[11] scheduled  zset  id -> due
-- KEYS[12] retrying   zset  id -> due; those of scheduled that have failed
-- KEYS[13] due        zset  token for schedulers
-- KEYS[14] digests    hash  id -> until when, ms, digest, heir
-- KEYS[15] unique     + digest, string  id of the job that holds it
-- KEYS[16] crashes    hash  id -> runs that took their worker down
-- KEYS[17] since      hash  id -> waits since
-- KEYS[18] results    hash  id -> ms to keep, outcome
-- KEYS[19] finished   zset  id -> when trim looks at it next
-- KEYS[20] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[21] progress   hash  id -> how far it is
-- KEYS[22] kept       zset  id -> when it finished; those of which an outcome is kept
-- KEYS[23] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[...] jobs      of each: id, failures to count (1 or 0), the failure as one line of JSON; at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, jobs = named(), ARGV
local now = now_ms(q.sweep)
local mine, stale = held_by(q.running, jobs, 3)
if #mine == 0 then return stale end

redis.call("DEL", q.scratch) -- lets a full server be drained
end_stopped(q, ids_at(jobs, mine), now)
for _, i in ipairs(mine) do
  local id, failures, line = jobs[i], jobs[i + 1], jobs[i + 2]
  -- Without a record it is over: it was asked to stop; or a torn log had given it to two, and one was done first.
  if redis.call("HEXISTS", q.jobs, id) == 1 then
    redis.call("ZADD", q.dead, now, id)
    note_failure(q, id, failures, line, now)
    tell_waiting(q, { id })
    let_go(q, { id })
    count(q.stats, now, "dead", 1)
  end
  redis.call("HDEL", q.running, id) -- last: a torn log may cost a second run, not a job
end
return stale
