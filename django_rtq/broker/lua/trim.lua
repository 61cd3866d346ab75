-- trim: delete outcomes and dead letters that are too old or too many.
-- dead -> gone
-- uses: prelude retention outcomes
-- keys: results finished dead jobs failures crashes errors waiting_since retrying clock scratch waiters
--       finished_signal scheduled due_signal digests unique cancel_requests progress result_times
--       scheduled_by_client
-- ARGV[1] max_dead    dead letters to keep
-- ARGV[2] dead_ms     how long to keep them
-- ARGV[3] limit       dead letters in this call, and outcomes, at most 100; of ids of jobs that are over ten times
--                     as many
--
-- returns {ids deleted, dead letters deleted, 1 if there may be more to delete, else 0}
-- sent twice: goes on where the first call stopped

local q, max_dead, dead_ms, limit = named(), tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms(q.clock)

redis.call("DEL", q.scratch) -- lets a full server be drained
local old = redis.call("ZRANGEBYSCORE", q.finished, "-inf", now, "LIMIT", 0, 10 * limit) -- ids are cheap
local gone, left = prune_ids(q, old, now, limit)
local over = math.min(redis.call("ZCARD", q.dead) - max_dead, limit)
local dead = over > 0 and redis.call("ZRANGE", q.dead, 0, over - 1)
  or redis.call("ZRANGEBYSCORE", q.dead, "-inf", now - dead_ms, "LIMIT", 0, limit)
if #dead > 0 then
  delete_jobs(q, dead)
  redis.call("ZREM", q.dead, unpack(dead))
end
return { gone, #dead, (#old >= 10 * limit or left > 0 or #dead >= limit) and 1 or 0 }
