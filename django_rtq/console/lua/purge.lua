-- purge: delete all queued and scheduled jobs of a queue, or of one client. What a torn log has left out of the index of
-- the client's scheduled jobs stays.
-- uses: prelude schedule lanes outcomes waiting members
-- ARGV[1] limit       jobs in this call, at most 100
-- ARGV[2] whose       "all", or "client": only those of one client
-- ARGV[3] client      its name
--
-- returns {how many jobs were deleted, how many ids were read}; {0, 0}: none is left
-- sent twice: goes on where the first call stopped

local q, limit, is_of_client, client = named(), tonumber(ARGV[1]), ARGV[2] == "client", ARGV[3]
local now = now_ms(q.clock)

-- A lane that has jobs.
local function find_lane()
  if not is_of_client then return redis.call("ZRANGE", q.lanes, 0, 0)[1] end
  for _, band in ipairs(bands_of(q, client)) do
    if redis.call("EXISTS", q.lane .. band .. ":" .. client) == 1 then return band .. ":" .. client end
  end
end

local scheduled = is_of_client and q.scheduled_by_client .. ":" .. client or q.scheduled
local ids = redis.call("ZRANGE", scheduled, 0, limit - 1)
local lane = #ids == 0 and find_lane()
if lane then ids = redis.call("LRANGE", q.lane .. lane, 0, limit - 1) end

local of_clients, deleted = {}, 0
for i, record in ipairs(#ids > 0 and not lane and redis.call("HMGET", q.jobs, unpack(ids)) or {}) do
  local _, owner = read_header(record or "")
  of_clients[owner] = of_clients[owner] or {}
  table.insert(of_clients[owner], ids[i])
end

-- Not what has left the lane, and only its id lies there: it was cancelled, or lives in another queue.
local has_left = lane and redis.call("EXISTS", q.cancelled_in_lane) == 1 and redis.call("HMGET", q.cancelled_in_lane, unpack(ids))
local waiting = has_left and {} or ids
for i, left in ipairs(has_left or {}) do
  if not left then waiting[#waiting + 1] = ids[i] end
end

if #ids > 0 then
  -- The jobs first: a torn log then leaves ids without a record, which claim skips.
  note_members(q, waiting, "gone")
  deleted = delete_jobs(q, ids)
  redis.call("HDEL", q.cancelled_in_lane, unpack(ids))
  expire_logs(q, ids, 0)
  for owner, of_owner in pairs(of_clients) do unschedule(q, owner, of_owner) end
  count(q.stats, now, "purged", deleted)
end
if lane then
  redis.call("LTRIM", q.lane .. lane, #ids, -1)
  local band, owner = string.match(lane, "^([^:]*):(.*)$")
  if redis.call("EXISTS", q.lane .. lane) == 0 then trim_cancelled(q, band, owner, now) end -- it leaves the ring
end
return { deleted, #ids > 0 and #ids or (lane and 1 or 0) }
