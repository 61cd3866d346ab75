-- trim: forget what was kept long enough, or is too much: outcomes and dead letters.
-- dead -> gone
-- uses: _prelude _schedule _digests _waiting _keeping _outcomes
--
-- KEYS[1] results     hash  id -> ms to keep, outcome
-- KEYS[2] finished    zset  id -> when trim looks at it next
-- KEYS[3] dead        zset  id -> time of death
-- KEYS[4] jobs        hash  id -> record
-- KEYS[5] failures    hash  id -> runs that failed
-- KEYS[6] crashes     hash  id -> runs that took their worker down
-- KEYS[7] errors      hash  id -> the last failures
-- KEYS[8] since       hash  id -> waits since
-- KEYS[9] retrying    zset  id -> due
-- KEYS[10] sweep      hash  the highest time seen
-- KEYS[11] scratch    never exists; see the rules for scripts
-- KEYS[12] waiting    zset  id -> until when somebody waits for its end
-- KEYS[13] over       + id, list  a token for who waits
-- KEYS[14] scheduled  zset  id -> due
-- KEYS[15] due        zset  token for schedulers
-- KEYS[16] digests    hash  id -> until when, ms, digest, heir
-- KEYS[17] unique     + digest, string  id of the job that holds it
-- KEYS[18] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[19] progress   hash  id -> how far it is
-- KEYS[20] kept       zset  id -> when it finished; those of which an outcome is kept
-- KEYS[21] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] max_dead    dead letters to keep
-- ARGV[2] dead_ms     how long to keep them
-- ARGV[3] limit       dead letters in this call, and outcomes, at most 100; of ids of jobs that are over ten times
--                     as many
--
-- returns {ids forgotten, dead letters forgotten, 1 if there may be more to forget, else 0}
-- sent twice: goes on where the first call stopped

local q, max_dead, dead_ms, limit = named(), tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms(q.sweep)

redis.call("DEL", q.scratch) -- lets a full server be drained
local old = redis.call("ZRANGEBYSCORE", q.finished, "-inf", now, "LIMIT", 0, 10 * limit) -- an id costs little
local gone, left = look_through(q, old, now, limit)
local over = math.min(redis.call("ZCARD", q.dead) - max_dead, limit)
local dead = over > 0 and redis.call("ZRANGE", q.dead, 0, over - 1)
  or redis.call("ZRANGEBYSCORE", q.dead, "-inf", now - dead_ms, "LIMIT", 0, limit)
if #dead > 0 then
  forget(q, dead)
  redis.call("ZREM", q.dead, unpack(dead))
end
return { gone, #dead, (#old >= 10 * limit or left > 0 or #dead >= limit) and 1 or 0 }
