-- _unique: who holds a digest.

-- The job that holds a digest, and its heir; nil when none does. What is over or dead holds nothing, whatever a torn
-- log left, and neither does what was to hold until it starts, and has: so a claim need not know of digests.
local function holder(q, digest)
  local id = redis.call("GET", q.unique .. digest)
  if not id or redis.call("HEXISTS", q.jobs, id) == 0 or redis.call("ZSCORE", q.dead, id) then return nil end
  local span, _, _, heir = note_of(q, id)
  if span == "start" then
    local has_failed = redis.call("HEXISTS", q.failures, id) == 1 or redis.call("HEXISTS", q.crashes, id) == 1
    if has_failed or runner_of(q, id) then return nil end
  end
  return id, is_heir(q, heir) and heir or nil
end
