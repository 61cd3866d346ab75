-- set_limits: change the limits of a queue and its clients. Pausing a client is a limit, too. Clients that are blocked stay
-- so until check_blocked, or until one of their jobs ends.
-- uses: recount
-- keys: limits limit_sources running_counts blocked bands work_signal scratch jobs signed_on
--       running_of
-- ARGV[...] entries   field of `limit_sources` and its new value in turn; "": delete it. "run:<field of limits>" was
--                     set at run time, and wins over "settings:<field of limits>"
--
-- returns the number of blocked clients
-- sent twice: nothing changes the second time

local q, entries = named(), ARGV

local function set(key, field, value)
  if value == "" then redis.call("HDEL", key, field) else redis.call("HSET", key, field, value) end
end

redis.call("DEL", q.scratch) -- lets a full server be drained
for i = 1, #entries, 2 do
  local field = string.match(entries[i], "^%l+:(.*)$")
  set(q.limit_sources, entries[i], entries[i + 1])
  local sources = redis.call("HMGET", q.limit_sources, "run:" .. field, "settings:" .. field)
  set(q.limits, field, sources[1] or sources[2] or "")
end
if redis.call("EXISTS", q.limits) == 1 then recount(q) else redis.call("DEL", q.running_counts) end
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
return redis.call("HLEN", q.blocked)
