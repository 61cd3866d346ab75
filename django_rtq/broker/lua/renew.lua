-- renew: extend the leases of live workers, and forget ids of jobs that finished long ago.
-- uses: workers known_ids
-- keys: workers clock scratch running_of cancel_requests finished finished_before no_outcome
--       no_outcome_before
-- ARGV[1] lease_ms    how long the leases last from now on
-- ARGV[...] names     the workers of one supervisor
--
-- returns {ms until the earliest lease of any worker ends, or -1; unknown names: workers that were considered dead;
--         of their jobs that were asked to stop: worker, id, "ask" or "terminate"}
-- sent twice: the leases are a little longer

local q = named()
local lease_ms, names = tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local unknown, asked = {}, {}
local AT_ONCE = 500

redis.call("DEL", q.scratch) -- lets a full server be drained
local now = record_contact(q, lease_ms)
rotate_ids(q, now)
for _, name in ipairs(names) do
  -- Not ZADD XX alone: its reply is the same for renewed and unknown workers.
  if redis.call("ZSCORE", q.workers, name) then
    redis.call("ZADD", q.workers, now + lease_ms, name)
  else
    unknown[#unknown + 1] = name
  end
end
local earliest = redis.call("ZRANGE", q.workers, 0, 0, "WITHSCORES")[2]
-- Look up the running jobs in `cancel_requests`, not the other way round: there may be many more requests.
if redis.call("EXISTS", q.cancel_requests) == 1 then
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
end
return { earliest and math.max(0, earliest - now) or -1, unknown, asked }
