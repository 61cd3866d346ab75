-- offer_undo: an action that can be undone is over: keep what it has set aside for a while, unless its undo has begun.
-- keys: undo undos scratch
-- ARGV[1] token       of the undo
-- ARGV[2] keep_ms     for how long, from now on; "": only read
--
-- returns {-1 if the undo was given up, texts that are set aside, for how long they are kept (ms)}
-- sent twice: they are kept for as long from the second time on

local q, token, keep_ms = named(), ARGV[1], ARGV[2]
local list = q.undo .. token

redis.call("DEL", q.scratch) -- lets a full server be drained
if keep_ms ~= "" and redis.call("HEXISTS", q.undos, token .. " reply") == 0 then redis.call("PEXPIRE", list, keep_ms) end
local bytes = tonumber(redis.call("HGET", q.undos, token) or 0)
return { math.min(bytes, 0), redis.call("LLEN", list), redis.call("PTTL", list) }
