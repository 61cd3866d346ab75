-- renew: workers live; their leases end later.
-- uses: _prelude
--
-- KEYS[1] workers     zset  worker -> lease deadline
-- KEYS[2] sweep       hash  contact, hold, high
-- KEYS[3] scratch     never exists; see the rules for scripts
-- KEYS[4] running     + worker, hash  id -> attempt and claim time
-- KEYS[5] stopping    hash  id -> how it is to stop; runs, and was asked to
-- ARGV[1] lease_ms    how long they may stay silent from now on
-- ARGV[...] names     the workers of one supervisor
--
-- returns {ms until the earliest lease of anybody ends, or -1; names that are unknown: given up for dead;
--         of their jobs that were asked to stop: worker, id, "ask" or "terminate"}
-- sent twice: the leases are a little longer

local q = named()
local lease_ms, names = tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local now = now_ms(q.sweep)
local unknown, asked = {}, {}

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
if redis.call("EXISTS", q.stopping) == 1 then
  local wishes = redis.call("HGETALL", q.stopping)
  for i = 1, #wishes, 2 do
    for _, name in ipairs(names) do
      if redis.call("HEXISTS", q.running .. name, wishes[i]) == 1 then
        asked[#asked + 1], asked[#asked + 2] = name, wishes[i]
        asked[#asked + 1] = string.match(wishes[i + 1], "^%a+")
      end
    end
  end
end
return { earliest and math.max(0, earliest - now) or -1, unknown, asked }
