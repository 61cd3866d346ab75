-- register_waiter: register that somebody waits for the end of a job.
-- uses: prelude
-- keys: jobs dead waiters finished_signal clock scratch
-- ARGV[1] id          the job
-- ARGV[2] wait_ms     how long, at most a minute
--
-- returns "wait", or "over" if the job has ended
-- sent twice: waits a little longer

local q = named()
local id, wait_ms = ARGV[1], ARGV[2]
local KEPT_MS, AT_ONCE = 120000, 100
local now = now_ms(q.clock)

if redis.call("HEXISTS", q.jobs, id) == 0 or redis.call("ZSCORE", q.dead, id) then return "over" end
redis.call("DEL", q.scratch) -- blocking costs a full server less than polling
redis.call("DEL", q.finished_signal .. id) -- of an earlier end: the job was requeued since
local late = redis.call("ZRANGEBYSCORE", q.waiters, "-inf", now, "LIMIT", 0, AT_ONCE)
if #late > 0 then redis.call("ZREM", q.waiters, unpack(late)) end
redis.call("ZADD", q.waiters, "GT", now + wait_ms, id)
redis.call("PEXPIRE", q.waiters, KEPT_MS)
return "wait"
