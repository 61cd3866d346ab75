-- register_waiter: register that somebody waits for the end of a job, and blocks on `finished_signal` next.
-- uses: prelude
-- ARGV[1] id          the job
-- ARGV[2] wait_ms     how long, at most a minute; 0: only ask
--
-- returns "wait", or "over" if the job has ended: then there is a token in `finished_signal`
-- sent twice: waits a little longer

local q = named()
local id, wait_ms = ARGV[1], tonumber(ARGV[2])
local KEPT_MS, TOKEN_MS, AT_ONCE = 120000, 1000, 100
local signal = q.finished_signal .. id
local now = now_ms(q.clock)

local is_over = redis.call("HEXISTS", q.jobs, id) == 0 or redis.call("ZSCORE", q.dead, id)
if wait_ms == 0 then return is_over and "over" or "wait" end
redis.call("DEL", q.scratch) -- blocking costs a full server less than polling
if is_over then
  if redis.call("EXISTS", signal) == 0 then
    redis.call("LPUSH", signal, "over")
    redis.call("PEXPIRE", signal, TOKEN_MS)
  end
  return "over"
end
redis.call("DEL", signal) -- of an earlier end: the job was requeued since
local late = redis.call("ZRANGEBYSCORE", q.waiters, "-inf", now, "LIMIT", 0, AT_ONCE)
if #late > 0 then redis.call("ZREM", q.waiters, unpack(late)) end
redis.call("ZADD", q.waiters, "GT", now + wait_ms, id)
redis.call("PEXPIRE", q.waiters, KEPT_MS)
return "wait"
