-- full: limits of running jobs that nobody may exceed.
-- created when first called
-- uses: limits

local FEW = 10 -- clients that are looked at

-- Whether nobody may start a job before another one ends, which signals work. Only a few clients are looked at.
local function is_full(q)
  if queue_room(q) <= 0 and not q.rates.queue then return true end
  local bands = redis.call("ZRANGE", q.bands, "0", "1")
  if #bands > 1 then return false end
  local clients = redis.call("ZRANGEBYSCORE", q.ring .. bands[1], "-inf", "(inf", "LIMIT", "0", FEW + 1)
  if #clients > FEW then return false end
  for i, room in ipairs((read_rooms(q, clients))) do
    if room > 0 or q.rates["client:" .. clients[i]] then return false end
  end
  return true
end
