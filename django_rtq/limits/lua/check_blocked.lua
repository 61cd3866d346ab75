-- check_blocked: let blocked clients take turns again if they may start a job, after limits were changed.
-- uses: blocking
-- ARGV[...] clients   at most 500
--
-- returns how many of them are blocked still
-- sent twice: nothing changes the second time

local q, clients = named(), ARGV

for _, client in ipairs(clients) do unblock(q, client) end
local left = 0
for _, bands in ipairs(redis.call("HMGET", q.blocked, unpack(clients))) do
  if bands then left = left + 1 end
end
return left
