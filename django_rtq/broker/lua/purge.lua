-- purge: delete or cancel all queued and scheduled jobs of a queue, or of one client. What a torn log has left out of the
-- index of the client's scheduled jobs stays.
-- queued, scheduled, retrying -> gone, or cancelled
-- uses: prelude schedule outcomes waiting
-- keys: jobs scheduled lanes cancelled_in_lane failures crashes errors waiting_since retrying clock scratch
--       stats lane waiters finished_signal due_signal digests unique cancel_requests progress
--       scheduled_by_client bands blocked results recent_results finished no_outcome result_times result_expiry
-- ARGV[1] limit       jobs in this call, at most 100
-- ARGV[2] whose       "all", or "client": only those of one client
-- ARGV[3] client      its name
-- ARGV[4] outcomes    "": the jobs are deleted. Or they are cancelled: "<outcomes kept in this queue> <for how many ms each is
--                     kept> <outcome>"
--
-- returns {how many jobs were deleted or cancelled, how many ids were read, the ids of cancelled jobs, ...}; {0, 0}: none is
--         left
-- sent twice: goes on where the first call stopped

local q, limit, is_of_client, client = named(), tonumber(ARGV[1]), ARGV[2] == "client", ARGV[3]
local most, keep_ms, outcome = string.match(ARGV[4], "^(%d+) (%d+) (.*)$")
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

local needs_records = #ids > 0 and (outcome or not lane)
local records = needs_records and redis.call("HMGET", q.jobs, unpack(ids)) or {}
local answer, of_clients = { 0, #ids > 0 and #ids or (lane and 1 or 0) }, {}
for i, record in ipairs(not lane and records or {}) do
  local _, owner = read_header(record or "")
  of_clients[owner] = of_clients[owner] or {}
  table.insert(of_clients[owner], ids[i])
end

-- The outcomes first, as in cancel.
local function keep_outcomes()
  local list, places = {}, {}
  for i, record in ipairs(outcome and records or {}) do
    if record then
      places[#places + 1], answer[#answer + 1] = #list + 1, ids[i]
      list[#list + 1], list[#list + 2], list[#list + 3] = ids[i], keep_ms, with_task(outcome, record)
    end
  end
  if #places > 0 then store_outcomes(q, list, places, tonumber(most), now) end
end

redis.call("DEL", q.scratch) -- lets a full server be drained
if #ids > 0 then
  keep_outcomes()
  -- The jobs first: a torn log then leaves ids without a record, which claim skips.
  answer[1] = delete_jobs(q, ids)
  redis.call("HDEL", q.cancelled_in_lane, unpack(ids))
  for owner, of_owner in pairs(of_clients) do unschedule(q, owner, of_owner) end
  count(q.stats, now, outcome and "cancelled" or "purged", answer[1])
end
if lane then
  redis.call("LTRIM", q.lane .. lane, #ids, -1)
  if redis.call("EXISTS", q.lane .. lane) == 0 then redis.call("ZREM", q.lanes, lane) end
end
return answer
