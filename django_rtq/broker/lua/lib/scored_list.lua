-- scored_list: list the members of a sorted set in steps.

-- The number of members before the place behind this one: see list_scored().
local function count_before(key, score, member, is_falling)
  local now = redis.call("ZSCORE", key, member)
  if not now or tonumber(now) ~= tonumber(score) then
    if is_falling then return redis.call("ZCOUNT", key, "(" .. score, "+inf") end
    return redis.call("ZCOUNT", key, "-inf", "(" .. score)
  end
  if is_falling then return redis.call("ZREVRANK", key, member) + 1 end
  return redis.call("ZRANK", key, member) + 1
end

-- List up to `wanted` members behind a member and its score ("": from the beginning), from the highest or the lowest on.
-- Returns the members with their scores. If the member has left the set, it may begin with some that were seen before.
local function list_scored(key, score, member, wanted, is_falling)
  local start = score == "" and 0 or count_before(key, score, member, is_falling)
  if is_falling then return redis.call("ZREVRANGE", key, start, start + wanted - 1, "WITHSCORES") end
  return redis.call("ZRANGE", key, start, start + wanted - 1, "WITHSCORES")
end
