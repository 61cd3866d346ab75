-- sign_off: a worker that holds nothing any more leaves.
-- uses: _prelude
--
-- KEYS[1] workers     zset  worker -> lease deadline
-- KEYS[2] running     hash  id -> attempt and claim time; the processing list of this worker
-- KEYS[3] bands       zset  band -> priority
-- KEYS[4] wake        zset  token for workers
-- KEYS[5] scratch     never exists; see the rules for scripts
-- KEYS[6] holders     zset  worker -> when it signed on; who may have a processing list
-- ARGV[1] worker      its name
--
-- returns "ok", or "busy" while jobs are written down for it
-- sent twice: nothing happens the second time

local q, worker = named(), ARGV[1]

if redis.call("EXISTS", q.running) == 1 then return "busy" end
redis.call("DEL", q.scratch) -- lets a full server be drained
-- It may have taken the token that would have woken another.
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.wake, 0, "work") end
redis.call("ZREM", q.workers, worker)
redis.call("ZREM", q.holders, worker)
return "ok"
