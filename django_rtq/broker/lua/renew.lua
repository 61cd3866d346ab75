-- renew: extend the leases of live workers in all their queues, and forget ids of jobs that finished long ago.
-- uses: workers known_ids
-- keys: workers clock scratch running_of cancel_requests finished finished_before no_outcome
--       no_outcome_before
-- ARGV[1] lease_ms    how long the leases last from now on
-- ARGV[...] names     the workers of one supervisor
--
-- returns an entry for each queue: {ms until the earliest lease of any worker ends, or -1; unknown names: workers that were
--         considered dead; of their jobs that were asked to stop: worker, id, "ask" or "terminate"; the number of workers}
-- sent twice: the leases are a little longer

local lease_ms, names, tags = tonumber(ARGV[1]), { select(2, unpack(ARGV)) }, KEYS
local AT_ONCE = 500

-- Returns the names that are not signed on. Not ZADD XX alone: its reply is the same for renewed and unknown workers.
local function renew_leases(q, now)
  local unknown, renewed = {}, {}
  for i, deadline in ipairs(#names > 0 and redis.call("ZMSCORE", q.workers, unpack(names)) or {}) do
    if deadline then
      renewed[#renewed + 1], renewed[#renewed + 2] = now + lease_ms, names[i]
    else
      unknown[#unknown + 1] = names[i]
    end
  end
  if #renewed > 0 then redis.call("ZADD", q.workers, unpack(renewed)) end
  return unknown
end

-- Look up the running jobs in `cancel_requests`, not the other way round: there may be many more requests.
local function find_asked(q)
  local asked = {}
  if redis.call("EXISTS", q.cancel_requests) == 0 then return asked end
  for _, name in ipairs(names) do
    local ids = redis.call("HKEYS", q.running_of .. name)
    for first = 1, #ids, AT_ONCE do
      local requests = redis.call("HMGET", q.cancel_requests, unpack(ids, first, math.min(first + AT_ONCE - 1, #ids)))
      for i, request in ipairs(requests) do
        if request then
          asked[#asked + 1], asked[#asked + 2] = name, ids[first + i - 1]
          asked[#asked + 1] = string.match(request, "^%a+")
        end
      end
    end
  end
  return asked
end

local answer = {}
for place = 1, #tags do
  if string.sub(tags[place], -2) == "::" then break end -- in a Cluster, a name that never exists
  local q = named(place)
  if place == 1 then redis.call("DEL", q.scratch) end -- lets a full server be drained
  local now = record_contact(q, lease_ms)
  rotate_ids(q, now)
  local unknown = renew_leases(q, now)
  local earliest = redis.call("ZRANGE", q.workers, 0, 0, "WITHSCORES")[2]
  local left = earliest and math.max(0, earliest - now) or -1
  answer[place] = { left, unknown, find_asked(q), redis.call("ZCARD", q.workers) }
end
return answer
