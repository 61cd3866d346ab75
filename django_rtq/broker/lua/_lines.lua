-- _lines: who comes next in turn, and with which jobs.

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

-- Whose turn it is, and the first ids of each.
local function next_lines(q, band, claim, now)
  local clients = redis.call("ZRANGE", q.ring .. band, 0, claim.wanted - 1)
  local share = math.ceil(claim.wanted / math.max(#clients, 1))
  local turns = { clients = clients, lanes = {}, lines = {}, taken = {}, ids = {}, share = share }
  local lane, last = q.lane .. band .. ":", tostring(share) -- one more: who is first then
  for c, client in ipairs(clients) do
    if q.has_ghosts and claim.may_pass_over > 0 then pass_over(q, claim, band .. ":" .. client, now) end
    turns.lanes[c] = lane .. client
    turns.lines[c] = redis.call("LRANGE", turns.lanes[c], "0", last)
    turns.taken[c] = 0
  end
  return turns
end
