-- pause: stop claims from a queue until it is resumed. Running jobs go on.
-- uses: prelude
-- keys: paused clock scratch
-- returns "paused", or "already"
-- sent twice: "already", and nothing changes

local q = named()

redis.call("DEL", q.scratch) -- lets a full server be drained
if redis.call("HSETNX", q.paused, "queue", string.format("%.0f", now_ms(q.clock))) == 1 then return "paused" end
return "already"
