-- purge: delete all queued and scheduled jobs of a queue.
-- queued, scheduled, retrying -> gone
-- uses: prelude schedule outcomes
-- keys: jobs scheduled lanes cancelled_in_lane failures crashes errors waiting_since retrying clock scratch
--       stats lane waiters finished_signal due_signal digests unique cancel_requests progress
--       scheduled_by_client
-- ARGV[1] limit       jobs in this call, at most 100
--
-- returns {how many jobs were deleted, how many ids were read}; {0, 0}: none is left
-- sent twice: goes on where the first call stopped

local q, limit = named(), tonumber(ARGV[1])
local ids = redis.call("ZRANGE", q.scheduled, 0, limit - 1)
local lane = #ids == 0 and redis.call("ZRANGE", q.lanes, 0, 0)[1]
if lane then ids = redis.call("LRANGE", q.lane .. lane, 0, limit - 1) end

local thrown, of_clients = 0, {}
for i, record in ipairs(#ids > 0 and not lane and redis.call("HMGET", q.jobs, unpack(ids)) or {}) do
  local _, client = read_header(record or "")
  of_clients[client] = of_clients[client] or {}
  table.insert(of_clients[client], ids[i])
end
redis.call("DEL", q.scratch) -- lets a full server be drained
if #ids > 0 then
  -- The jobs first: a torn log then leaves ids without a record, which claim skips.
  thrown = delete_jobs(q, ids)
  redis.call("HDEL", q.cancelled_in_lane, unpack(ids))
  for client, of_client in pairs(of_clients) do unschedule(q, client, of_client) end
  count(q.stats, now_ms(q.clock), "purged", thrown)
end
if lane then
  redis.call("LTRIM", q.lane .. lane, #ids, -1)
  if redis.call("EXISTS", q.lane .. lane) == 0 then redis.call("ZREM", q.lanes, lane) end
end
return { thrown, #ids > 0 and #ids or (lane and 1 or 0) }
