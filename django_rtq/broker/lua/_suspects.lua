-- _suspects: jobs that were running when their worker died. They run together, apart from others, in ever smaller groups.

-- Whether a job may run beside those that this claim has taken. After its first crash it runs beside half as many as
-- there are slots, after the second a quarter; alone, when one crash more would make it dead: so a job dies of nobody's
-- crashes but its own.
local function may_join(q, claim, id, taken)
  local found = redis.call("HGET", q.crashes, id)
  if not found then return claim.suspects == 0 end
  local crashes = tonumber(found)
  local _, _, max_crashes = header(redis.call("HGET", q.jobs, id) or "")
  local most = crashes >= max_crashes and 1 or math.max(1, math.floor(claim.slots / 2 ^ crashes))
  most = math.min(most, claim.slots, claim.most)
  if claim.suspects >= most or (claim.suspects == 0 and taken > 0) then return false end
  claim.suspects, claim.most = claim.suspects + 1, most
  return true
end
