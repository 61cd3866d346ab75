-- record_step: note what a running job has done, for its later runs.
-- KEYS[2] running     the worker's processing list
-- ARGV[1] id          the job
-- ARGV[2] claimed     when this run was claimed, ms: what is left of an earlier run of the same worker may not write
-- ARGV[3] field       of the job's steps, see steps.lua
-- ARGV[4] text        its value
--
-- returns "ok", or "stale": no longer this run's
-- sent twice: is stored again

local q, id, claimed, field, text = named(), ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if string.match(redis.call("HGET", q.running, id) or "", "^%d+ (%d+)") ~= claimed then return "stale" end
redis.call("HSETNX", q.step_jobs, id, "") -- first: by that its steps are found when it ends
redis.call("HSET", q.steps .. id, field, text)
redis.call("HDEL", q.failures, id) -- the job has got further: what went wrong before that counts no longer
redis.call("HDEL", q.crashes, id)
return "ok"
