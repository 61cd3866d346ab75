-- find: all that is known of one job. Reads only.
-- uses: _prelude
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] scheduled   zset  id -> due
-- KEYS[3] dead        zset  id -> time of death
-- KEYS[4] failures    hash  id -> runs that failed
-- KEYS[5] crashes     hash  id -> runs that took their worker down
-- KEYS[6] errors      hash  id -> the last failures
-- KEYS[7] results     hash  id -> outcome
-- KEYS[8] finished    zset  id -> when it may be forgotten
-- KEYS[9] workers     zset  worker -> lease deadline
-- KEYS[10] sweep      hash  the highest time seen
-- KEYS[11] running    + worker, hash  id -> attempt and claim time
-- ARGV[1] id          the job
--
-- returns {record, due, died, failures, crashes, errors, outcome, forgotten at, worker, attempt and claim time,
--         when the lease of that worker ends, now}; "" where there is none
-- sent twice: answers twice

local NAMES = { "jobs", "scheduled", "dead", "failures", "crashes", "errors", "results", "finished", "workers",
  "sweep", "running" }
local q, id = named(KEYS, NAMES, 1), ARGV[1]
local holder, held, lease = "", "", ""

local workers = redis.call("ZRANGE", q.workers, 0, -1, "WITHSCORES")
for i = 1, #workers, 2 do
  local entry = redis.call("HGET", q.running .. workers[i], id)
  if entry then holder, held, lease = workers[i], entry, workers[i + 1] end
end
return {
  redis.call("HGET", q.jobs, id) or "",
  redis.call("ZSCORE", q.scheduled, id) or "",
  redis.call("ZSCORE", q.dead, id) or "",
  redis.call("HGET", q.failures, id) or "",
  redis.call("HGET", q.crashes, id) or "",
  redis.call("HGET", q.errors, id) or "",
  redis.call("HGET", q.results, id) or "",
  redis.call("ZSCORE", q.finished, id) or "",
  holder,
  held,
  lease,
  now_ms(q.sweep),
}
