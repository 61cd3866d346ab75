-- _passing_over: ids in lanes whose jobs were cancelled.

-- Drop from the front of a lane what was cancelled, as much as this claim may still pass over. It costs no turn.
local function pass_over(q, claim, lane, now)
  local key, passed = q.lane .. lane, {}
  local first = redis.call("LINDEX", key, 0)
  if not first or redis.call("HEXISTS", q.jobs, first) == 1 then return end
  for i, id in ipairs(redis.call("LRANGE", key, 0, claim.may_pass_over - 1)) do
    if redis.call("HEXISTS", q.jobs, id) == 1 then break end
    passed[i] = id
  end
  claim.may_pass_over = claim.may_pass_over - #passed
  redis.call("LTRIM", key, #passed, -1)
  redis.call("HDEL", q.ghosts, unpack(passed))
  first = redis.call("LINDEX", key, 0)
  if first then redis.call("ZADD", q.lanes, waiting_since(q, first, now), lane) end
end
