-- repair_jobs: queue jobs again that a torn log has left in no place: neither in their lane, nor running, scheduled or dead.
-- Looks at some records, chosen at random; and at ids that are said to be cancelled in a lane, and are not there.
-- uses: prelude lanes settle
-- ARGV[1] limit       records, and cancelled ids, to look at, at most 100
--
-- returns {id, "queued" or "cancelled", ...}
-- sent twice: what is queued is in a place the second time; looks at other records

local q, limit = named(), tonumber(ARGV[1])
local now, answer, lane_of, record_of = now_ms(q.clock), {}, {}, {}
local WORKERS, LOOKUPS = 1000, 2000 -- with more workers nothing is searched; ids that are looked up in processing lists
local BYTES, POSITIONS = 500000, 50000 -- of records; of lanes: a longer one is searched when it is shorter

-- Those of these ids that are not in a sorted set, or a processing list.
local function missing_in(key, ids, is_list)
  local missing = {}
  for i, found in ipairs(#ids > 0 and redis.call(is_list and "HMGET" or "ZMSCORE", key, unpack(ids)) or {}) do
    if not found then missing[#missing + 1] = ids[i] end
  end
  return missing
end

-- Those of these ids that do not wait behind the first job of their lane: all others are most likely in it. If they are
-- not, they are found when younger jobs are the first.
local function not_behind(ids)
  local found, bytes = {}, 0
  for _, id in ipairs(ids) do
    bytes = bytes + redis.call("HSTRLEN", q.jobs, id)
    if bytes > BYTES and id ~= ids[1] then break end
    local record = redis.call("HGET", q.jobs, id)
    local band, client = read_header(record)
    local first = redis.call("ZSCORE", q.lanes, band .. ":" .. client)
    if not first or waiting_since(q, id, now) <= tonumber(first) then
      found[#found + 1], lane_of[id], record_of[id] = id, band .. ":" .. client, record
    end
  end
  return found
end

-- Those of these ids that no worker holds, as far as they can be looked up.
local function not_running(ids)
  local number = redis.call("ZCARD", q.signed_on)
  if number > WORKERS then return {} end
  for i = #ids, math.max(1, math.floor(LOOKUPS / math.max(1, number))) + 1, -1 do ids[i] = nil end
  for _, worker in ipairs(redis.call("ZRANGE", q.signed_on, 0, -1)) do
    ids = missing_in(q.running_of .. worker, ids, true)
  end
  return ids
end

-- Those of these ids that are not in their lanes, as far as these can be searched.
local left = POSITIONS
local function not_in_lanes(ids)
  local lost = {}
  for _, id in ipairs(ids) do
    local length = redis.call("LLEN", q.lane .. lane_of[id])
    if length <= left then
      left = left - length
      local is_there = redis.call("LPOS", q.lane .. lane_of[id], id)
      if not is_there then lost[#lost + 1] = id end
      if is_there and not redis.call("ZSCORE", q.lanes, lane_of[id]) then -- the lane is in no index
        local band, client = read_header(record_of[id])
        index_lane(q, band, client, waiting_since(q, id, now))
      end
    end
  end
  return lost
end

local ids = missing_in(q.dead, missing_in(q.scheduled, redis.call("HRANDFIELD", q.jobs, limit)))
local lost = not_in_lanes(not_running(not_behind(ids)))
local ended = finish_cancelled(q, lost, now)
for _, id in ipairs(lost) do
  if not ended[id] then push_front(q, id, record_of[id], now) end
  answer[#answer + 1], answer[#answer + 2] = id, ended[id] and "cancelled" or "queued"
end
-- Forget cancelled ids that are not in their lanes.
local entries, gone = redis.call("HRANDFIELD", q.cancelled_in_lane, limit, "WITHVALUES"), {}
for i = 1, #entries, 2 do
  local lane = q.lane .. entries[i + 1]
  local length = redis.call("LLEN", lane)
  if length <= left then
    left = left - length
    if not redis.call("LPOS", lane, entries[i]) then gone[#gone + 1] = entries[i] end
  end
end
if #gone > 0 then redis.call("HDEL", q.cancelled_in_lane, unpack(gone)) end
return answer
