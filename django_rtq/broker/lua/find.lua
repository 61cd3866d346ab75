-- find: all that is known of one job. Reads only.
-- uses: _prelude _runners
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] scheduled   zset  id -> due
-- KEYS[3] dead        zset  id -> time of death
-- KEYS[4] failures    hash  id -> runs that failed
-- KEYS[5] crashes     hash  id -> runs that took their worker down
-- KEYS[6] errors      hash  id -> the last failures
-- KEYS[7] results     hash  id -> ms to keep, outcome
-- KEYS[8] finished    zset  id -> when trim looks at it next
-- KEYS[9] workers     zset  worker -> lease deadline
-- KEYS[10] running    + worker, hash  id -> attempt and claim time
-- KEYS[11] sweep      hash  the highest time seen
-- KEYS[12] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[13] progress   hash  id -> how far it is
-- KEYS[14] kept       zset  id -> when it finished; those of which an outcome is kept
-- ARGV[1] id          the job
--
-- returns {record, due, died, failures, crashes, errors, outcome, looked at next, worker, attempt and claim time,
--         when the lease of that worker ends, now, how it is to stop, how far it is, when it finished, if its
--         outcome is kept}; "" where there is none
-- sent twice: answers twice

local q, id = named(), ARGV[1]
local record, worker, held, lease = redis.call("HGET", q.jobs, id), nil, nil, nil
if record then worker, held, lease = runner_of(q, id) end -- looks at each worker: not for a job that is over

return {
  record or "",
  redis.call("ZSCORE", q.scheduled, id) or "",
  redis.call("ZSCORE", q.dead, id) or "",
  redis.call("HGET", q.failures, id) or "",
  redis.call("HGET", q.crashes, id) or "",
  redis.call("HGET", q.errors, id) or "",
  redis.call("HGET", q.results, id) or "",
  redis.call("ZSCORE", q.finished, id) or "",
  worker or "",
  held or "",
  lease or "",
  now_ms(q.sweep),
  redis.call("HGET", q.stopping, id) or "",
  redis.call("HGET", q.progress, id) or "",
  redis.call("ZSCORE", q.kept, id) or "",
}
