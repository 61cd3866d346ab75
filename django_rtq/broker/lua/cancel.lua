-- cancel: take a job out before it runs.
-- queued, scheduled, retrying -> cancelled
-- uses: _prelude _schedule _digests _waiting _outcomes
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] scheduled   zset  id -> due
-- KEYS[3] dead        zset  id -> time of death
-- KEYS[4] ghosts      hash  id -> lane; cancelled, but still named in a lane
-- KEYS[5] failures    hash  id -> runs that failed
-- KEYS[6] crashes     hash  id -> runs that took their worker down
-- KEYS[7] errors      hash  id -> the last failures
-- KEYS[8] since       hash  id -> waits since
-- KEYS[9] retrying    zset  id -> due
-- KEYS[10] results    hash  id -> outcome
-- KEYS[11] finished   zset  id -> when it may be forgotten
-- KEYS[12] workers    zset  worker -> lease deadline
-- KEYS[13] sweep      hash  the highest time seen
-- KEYS[14] scratch    never exists; see the rules for scripts
-- KEYS[15] stats      + minute, hash  counters
-- KEYS[16] running    + worker, hash  id -> attempt and claim time
-- KEYS[17] waiting    zset  id -> until when somebody waits for its end
-- KEYS[18] over       + id, list  a token for who waits
-- KEYS[19] due        zset  token for schedulers
-- KEYS[20] digests    hash  id -> until when, ms, digest, heir
-- KEYS[21] unique     + digest, string  id of the job that holds it
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[2] id          the job
-- ARGV[3] keep_ms     how long the outcome is kept
-- ARGV[4] outcome     what is kept of it
--
-- returns "cancelled", or why not: "missing", "running", "dead", "finished"
-- sent twice: "finished", and nothing changes

local NAMES = { "jobs", "scheduled", "dead", "ghosts", "failures", "crashes", "errors", "since", "retrying", "results",
  "finished", "workers", "sweep", "scratch", "stats", "running", "waiting", "over", "due", "digests", "unique" }
local q, most, id, keep_ms, outcome = named(KEYS, NAMES, 1), tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local now = now_ms(q.sweep)
local record = redis.call("HGET", q.jobs, id)

if not record then return redis.call("ZSCORE", q.finished, id) and "finished" or "missing" end
if redis.call("ZSCORE", q.dead, id) then return "dead" end
for _, worker in ipairs(redis.call("ZRANGE", q.workers, 0, -1)) do
  if redis.call("HEXISTS", q.running .. worker, id) == 1 then return "running" end
end

redis.call("DEL", q.scratch) -- lets a full server be drained
-- To find an id in a lane costs as much as the lane is long: it stays there, and claim passes it over.
local band, client = header(record)
if not redis.call("ZSCORE", q.scheduled, id) then redis.call("HSET", q.ghosts, id, band .. ":" .. client) end
remember(q, { now + keep_ms, id }, { id, outcome }, most)
forget(q, { id })
redis.call("ZREM", q.scheduled, id)
count(q.stats, now, "cancelled", 1)
return "cancelled"
