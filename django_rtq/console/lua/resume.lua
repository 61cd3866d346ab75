-- resume: allow claims from a paused queue again, and wake a worker.
-- keys: paused work_signal scratch
-- returns "resumed", or "already"
-- sent twice: "already", and a worker wakes for nothing

local q = named()

redis.call("DEL", q.scratch) -- lets a full server be drained
redis.call("ZADD", q.work_signal, 0, "work")
if redis.call("HDEL", q.paused, "queue") == 1 then return "resumed" end
return "already"
