-- retry: let failed jobs wait for their next attempt.
-- running -> retrying; cancelled, if it was asked to stop
-- uses: _prelude _schedule _digests _waiting _keeping _outcomes _stopping _failures
--
-- KEYS[1] running     hash  id -> attempt and claim time; the processing list of this worker
-- KEYS[2] jobs        hash  id -> record
-- KEYS[3] failures    hash  id -> runs that failed
-- KEYS[4] errors      hash  id -> the last failures
-- KEYS[5] scheduled   zset  id -> due
-- KEYS[6] retrying    zset  id -> due; those of scheduled that have failed
-- KEYS[7] due         zset  token for schedulers
-- KEYS[8] sweep       hash  the highest time seen
-- KEYS[9] scratch     never exists; see the rules for scripts
-- KEYS[10] stats      + minute, hash  counters
-- KEYS[11] crashes    hash  id -> runs that took their worker down
-- KEYS[12] since      hash  id -> waits since
-- KEYS[13] results    hash  id -> ms to keep, outcome
-- KEYS[14] finished   zset  id -> when trim looks at it next
-- KEYS[15] waiting    zset  id -> until when somebody waits for its end
-- KEYS[16] over       + id, list  a token for who waits
-- KEYS[17] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[18] progress   hash  id -> how far it is
-- KEYS[19] digests    hash  id -> until when, ms, digest, heir
-- KEYS[20] unique     + digest, string  id of the job that holds it
-- KEYS[21] kept       zset  id -> when it finished; those of which an outcome is kept
-- KEYS[22] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[...] jobs      of each: id, ms to wait, failures to count (1, or 0 for a job that this worker could not run),
--                     the failure as one line of JSON, client (a newline: who tells this does not know it); at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, jobs = named(), ARGV
local now = now_ms(q.sweep)
local mine, stale = held_by(q.running, jobs, 5)
if #mine == 0 then return stale end

redis.call("DEL", q.scratch) -- lets a full server be drained
end_stopped(q, ids_at(jobs, mine), now)
for _, i in ipairs(mine) do
  local id, due, failures, line, client = jobs[i], now + jobs[i + 1], jobs[i + 2], jobs[i + 3], jobs[i + 4]
  -- Without a record it is over: it was asked to stop; or a torn log had given it to two, and one was done first.
  if redis.call("HEXISTS", q.jobs, id) == 1 then
    if client == "\n" then client = select(2, header(redis.call("HGET", q.jobs, id))) end
    schedule(q, client, due, id)
    redis.call("ZADD", q.retrying, due, id)
    -- Of a job that waits for a worker that knows its task the first such failure is kept: it tells since when.
    if failures ~= "0" or not is_again(q.errors, id, line) then note_failure(q, id, failures, line, now) end
  end
  redis.call("HDEL", q.running, id) -- last: a torn log may cost a second run, not a job
end
return stale
