-- _suspects: jobs that were running when their worker died. They run together, apart from others, in ever smaller groups.

-- How many may run side by side when this is one of them: half of the slots after its first crash, a quarter after the
-- second. Alone, when one crash more would make it dead: so a job dies of nobody's crashes but its own.
local function most_beside(q, id, crashes, slots)
  local _, _, max_crashes = header(redis.call("HGET", q.jobs, id) or "")
  local most = crashes >= max_crashes and 1 or math.floor(slots / 2 ^ crashes)
  return math.min(slots, math.max(1, most))
end

-- Whether a job may run beside those that this claim has taken.
local function may_join(q, claim, id, taken)
  local crashes = redis.call("HGET", q.crashes, id)
  if not crashes then return claim.suspects == 0 end
  local most = math.min(claim.most, most_beside(q, id, tonumber(crashes), claim.slots))
  if claim.suspects >= most or (claim.suspects == 0 and taken > 0) then return false end
  claim.suspects, claim.most = claim.suspects + 1, most
  return true
end
