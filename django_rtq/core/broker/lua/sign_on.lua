-- sign_on: register a new worker. Its name was never used before.
-- uses: workers
-- ARGV[1] lease_ms    how long its lease lasts
-- ARGV[2] worker      its name
--
-- returns "ok"
-- sent twice: the lease is a little longer

local q, lease_ms, worker = named(), tonumber(ARGV[1]), ARGV[2]

local now = record_contact(q, lease_ms)
-- Before it can claim: after a torn log, repair_lanes finds its jobs here.
redis.call("ZADD", q.signed_on, now - 10000000000000, worker)
redis.call("ZADD", q.workers, now + lease_ms, worker)
return "ok"
