-- report_progress: store the progress of a running job.
-- uses: prelude
-- KEYS[2] running     the worker's processing list
-- ARGV[1] id          the job
-- ARGV[2] line        the progress, JSON
--
-- returns "ok", or "stale": no longer this worker's
-- sent twice: is stored again

local q, id, line = named(), ARGV[1], ARGV[2]
local now = now_ms(q.clock)

if redis.call("HEXISTS", q.running, id) == 0 then return "stale" end
redis.call("HSET", q.progress, id, string.format("%.0f ", now) .. line)
return "ok"
