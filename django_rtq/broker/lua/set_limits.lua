-- set_limits: change the limits of a queue and its clients. Pausing a client is a limit, too. Clients that are blocked stay
-- so until check_blocked, or until one of their jobs ends.
-- uses: recount
-- keys: limits running_counts blocked bands work_signal scratch jobs signed_on
--       running_of
-- ARGV[...] entries   field of `limits` and its new value in turn; "": delete it
--
-- returns the number of blocked clients
-- sent twice: nothing changes the second time

local q, entries = named(), ARGV

redis.call("DEL", q.scratch) -- lets a full server be drained
for i = 1, #entries, 2 do
  if entries[i + 1] == "" then
    redis.call("HDEL", q.limits, entries[i])
  else
    redis.call("HSET", q.limits, entries[i], entries[i + 1])
  end
end
if redis.call("EXISTS", q.limits) == 1 then recount(q) else redis.call("DEL", q.running_counts) end
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
return redis.call("HLEN", q.blocked)
