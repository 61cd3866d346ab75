-- wait: say that somebody waits for the end of a job.
-- uses: _prelude
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] dead        zset  id -> time of death
-- KEYS[3] waiting     zset  id -> until when somebody waits for its end
-- KEYS[4] sweep       hash  the highest time seen
-- ARGV[1] id          the job
-- ARGV[2] ms          how long
--
-- returns "wait", or "over"
-- sent twice: is waited for a little longer

local q, id, ms = named(KEYS, { "jobs", "dead", "waiting", "sweep" }, 1), ARGV[1], ARGV[2]
local now = now_ms(q.sweep)

redis.call("ZREMRANGEBYSCORE", q.waiting, "-inf", now)
if redis.call("HEXISTS", q.jobs, id) == 0 or redis.call("ZSCORE", q.dead, id) then return "over" end
redis.call("ZADD", q.waiting, "GT", now + ms, id)
return "wait"
