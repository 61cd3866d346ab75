-- pause: nothing of a queue is claimed until it is resumed. What runs goes on.
-- uses: _prelude
--
-- KEYS[1] paused      string  since when, ms
-- KEYS[2] sweep       hash  the highest time seen
-- KEYS[3] scratch     never exists; see the rules for scripts
--
-- returns "paused", or "already"
-- sent twice: "already", and nothing changes

local q = named()

redis.call("DEL", q.scratch) -- lets a full server be drained
if redis.call("SETNX", q.paused, string.format("%.0f", now_ms(q.sweep))) == 1 then return "paused" end
return "already"
