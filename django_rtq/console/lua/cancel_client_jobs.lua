-- cancel_client_jobs: cancel the queued and scheduled jobs of a client that were made up to a moment, as their ids say. What
-- a torn log has left out of the index of the client's scheduled jobs stays.
-- queued, scheduled, retrying -> cancelled
-- uses: prelude schedule outcomes waiting members
-- keys: jobs lanes scheduled cancelled_in_lane failures crashes errors waiting_since retrying clock scratch stats lane
--       waiters finished_signal due_signal digests unique cancel_requests progress scheduled_by_client bands blocked
--       results recent_results finished no_outcome result_times result_expiry log ended_members step_jobs steps
-- ARGV[1] limit       jobs in this call, at most 100
-- ARGV[2] client      its name
-- ARGV[3] until_ms    the moment
-- ARGV[4] at          where to start: "scheduled 0", or what the last call returned
-- ARGV[5] most        outcomes kept in this queue
-- ARGV[6] keep_ms     how long the outcomes are kept
-- ARGV[7] outcome     what is stored for each, a JSON object; the name of its task is added
--
-- returns {where to start the next call, or "": none is left, the ids of the cancelled jobs, ...}
-- sent twice: goes on where the first call stopped

local q, limit, client, until_ms = named(), tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local place, skip = string.match(ARGV[4], "^(%S+) (%d+)$") -- "scheduled", latest first, or a band; jobs that stay
local most, keep_ms, outcome = tonumber(ARGV[5]), ARGV[6], ARGV[7]
local now = now_ms(q.clock)

-- Cancel those of these jobs that were made up to the moment. Returns their ids. Their outcomes first, as in cancel.
local function cancel(ids, lane)
  local cancelled, noted, list, places = {}, {}, {}, {}
  for i, record in ipairs(redis.call("HMGET", q.jobs, unpack(ids))) do
    local id = ids[i]
    if record and (tonumber(string.sub(id, 1, 12), 16) or 0) <= until_ms then
      places[#places + 1], cancelled[#cancelled + 1] = #list + 1, id
      list[#list + 1], list[#list + 2], list[#list + 3] = id, keep_ms, with_task(outcome, record)
      noted[#noted + 1], noted[#noted + 2] = id, lane
    end
  end
  if #cancelled == 0 then return cancelled end
  if lane then redis.call("HSET", q.cancelled_in_lane, unpack(noted)) end
  store_outcomes(q, list, places, most, now)
  note_members(q, cancelled, "gone")
  delete_jobs(q, cancelled)
  expire_logs(q, cancelled, keep_ms)
  count(q.stats, now, "cancelled", #cancelled)
  return cancelled
end

-- Remove the ids of cancelled jobs from the front of a lane. Returns how many there were.
local function trim_front(lane, ids)
  local passed = {}
  for i, record in ipairs(redis.call("HMGET", q.jobs, unpack(ids))) do
    if record then break end
    passed[i] = ids[i]
  end
  if #passed == 0 then return 0 end
  redis.call("HDEL", q.cancelled_in_lane, unpack(passed)) -- first: a torn log then leaves ids that claim skips
  redis.call("LTRIM", q.lane .. lane, #passed, -1)
  if redis.call("EXISTS", q.lane .. lane) == 0 then redis.call("ZREM", q.lanes, lane) end
  return #passed
end

redis.call("DEL", q.scratch) -- lets a full server be drained
if place == "scheduled" then
  local ids = redis.call("ZREVRANGE", q.scheduled_by_client .. ":" .. client, skip, skip + limit - 1)
  if #ids > 0 then
    local cancelled = cancel(ids)
    if #cancelled > 0 then unschedule(q, client, cancelled) end
    return { "scheduled " .. skip + #ids - #cancelled, unpack(cancelled) }
  end
end
local bands, first = bands_of(q, client), 0
for i, band in ipairs(bands) do
  if band == place then first = i end
end
for i = math.max(first, 1), #bands do
  local lane, start = bands[i] .. ":" .. client, i == first and skip or 0
  local ids = redis.call("LRANGE", q.lane .. lane, start, start + limit - 1)
  if #ids > 0 then
    local cancelled = cancel(ids, lane)
    local trimmed = tonumber(start) == 0 and trim_front(lane, ids) or 0
    return { bands[i] .. " " .. start + #ids - trimmed, unpack(cancelled) }
  end
end
return { "" }
