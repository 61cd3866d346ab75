-- pause: stop claims from a queue until it is resumed. Running jobs go on.
-- uses: prelude
-- keys: paused clock scratch
-- ARGV[1] by          who pauses it; "": not known
-- returns "paused", or "already"
-- sent twice: "already", and nothing changes

local q, by = named(), ARGV[1]

redis.call("DEL", q.scratch) -- lets a full server be drained
if by ~= "" then by = " " .. by end
if redis.call("HSETNX", q.paused, "queue", string.format("%.0f", now_ms(q.clock)) .. by) == 1 then return "paused" end
return "already"
