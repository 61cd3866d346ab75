-- renew: workers live; their leases end later.
-- uses: _prelude
--
-- KEYS[1] workers     zset  worker -> lease deadline
-- KEYS[2] sweep       hash  contact, hold, high
-- KEYS[3] scratch     never exists; see the rules for scripts
-- ARGV[1] lease_ms    how long they may stay silent from now on
-- ARGV[...] names     the workers of one supervisor
--
-- returns {ms until the earliest lease of anybody ends, names that are unknown: given up for dead}; -1: there is none
-- sent twice: the leases are a little longer

local q = named(KEYS, { "workers", "sweep", "scratch" }, 1)
local lease_ms, names = tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local now = now_ms(q.sweep)
local unknown = {}

redis.call("DEL", q.scratch) -- lets a full server be drained
contact(q.sweep, now, lease_ms)
for _, name in ipairs(names) do
  -- Not ZADD XX alone: its answer does not tell a renewed worker from an unknown one.
  if redis.call("ZSCORE", q.workers, name) then
    redis.call("ZADD", q.workers, now + lease_ms, name)
  else
    unknown[#unknown + 1] = name
  end
end
local earliest = redis.call("ZRANGE", q.workers, 0, 0, "WITHSCORES")[2]
return { earliest and math.max(0, earliest - now) or -1, unknown }
