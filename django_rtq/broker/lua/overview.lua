-- overview: what there is in a queue. Reads only; costs the same however long the queue is.
-- uses: _prelude
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] scheduled   zset  id -> due
-- KEYS[3] retrying    zset  id -> due; those of scheduled that have failed
-- KEYS[4] dead        zset  id -> time of death
-- KEYS[5] workers     zset  worker -> lease deadline
-- KEYS[6] lanes       zset  band:client -> since when its first job waits
-- KEYS[7] paused      string  present while paused
-- KEYS[8] sweep       hash  the highest time seen
-- KEYS[9] kept        zset  id -> when it finished; those of which an outcome is kept
-- KEYS[10] running    + worker, hash  id -> attempt and claim time
--
-- returns {now, live jobs, scheduled, retrying, dead, running, lanes, since when the oldest waits, paused since,
--         outcomes kept, when anybody spoke last, when somebody promoted last, by how many ms the server's clock is
--         behind}; "" for a moment that there is not
-- sent twice: answers twice

local q, running = named(), 0
local now, _, clock = now_ms(q.sweep)

for _, worker in ipairs(redis.call("ZRANGE", q.workers, 0, -1)) do
  running = running + redis.call("HLEN", q.running .. worker)
end
local retrying = redis.call("ZCARD", q.retrying)
return {
  now,
  redis.call("HLEN", q.jobs),
  redis.call("ZCARD", q.scheduled) - retrying,
  retrying,
  redis.call("ZCARD", q.dead),
  running,
  redis.call("ZCARD", q.lanes),
  redis.call("ZRANGE", q.lanes, 0, 0, "WITHSCORES")[2] or "",
  redis.call("GET", q.paused) or "",
  redis.call("ZCARD", q.kept),
  redis.call("HGET", q.sweep, "contact") or "",
  redis.call("HGET", q.sweep, "promoted") or "",
  math.max(0, now - clock),
}
