-- trim: delete outcomes and dead letters that are too old or too many.
-- uses: prelude known_ids retention outcomes members
-- ARGV[1] max_dead    dead letters to keep
-- ARGV[2] dead_ms     how long to keep them
-- ARGV[3] limit       dead letters in this call, at most 100
--
-- returns {outcomes deleted, dead letters deleted, 1 if there may be more to delete, else 0}
-- sent twice: goes on where the first call stopped

local q, max_dead, dead_ms, limit = named(), tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms(q.clock)

rotate_ids(q, now)
local gone, has_more = expire_outcomes(q, now)
local over = math.min(redis.call("ZCARD", q.dead) - max_dead, limit)
local dead = over > 0 and redis.call("ZRANGE", q.dead, 0, over - 1)
  or redis.call("ZRANGEBYSCORE", q.dead, "-inf", now - dead_ms, "LIMIT", 0, limit)
if #dead > 0 then
  note_members(q, dead, "gone")
  delete_jobs(q, dead)
  expire_logs(q, dead, 0)
  redis.call("ZREM", q.dead, unpack(dead))
end
return { gone, #dead, (has_more or #dead >= limit) and 1 or 0 }
