-- sign_off: remove a worker that holds no jobs.
-- uses: workers
-- KEYS[2] running     the worker's processing list
-- ARGV[1] worker      its name
--
-- returns "ok", or "busy" while it holds jobs
-- sent twice: nothing happens the second time

local q, worker = named(), ARGV[1]

if redis.call("EXISTS", q.running) == 1 then return "busy" end
-- It may have taken the signal that would have woken another worker.
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, 0, "work") end
delete_worker(q, worker)
return "ok"
