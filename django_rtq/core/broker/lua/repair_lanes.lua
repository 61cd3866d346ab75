-- repair_lanes: repair indexes after a torn log, some lanes and workers in a call: lanes with jobs that are in no ring, and
-- processing lists of workers without a lease. These get an expired lease, so that their jobs are reclaimed. Counts jobs again.
-- uses: prelude lanes blocking running_counts workers runners
-- ARGV[1] start       how many lanes, and how many workers, to skip
-- ARGV[2] limit       lanes, and workers, to check in this call, at most 100
-- ARGV[3] count_ms    how long after the last time the records are counted
--
-- returns {where to start next, or 0: all were checked; how many jobs are in no place, -1: unknown, repair_jobs has to look}
--         Where to start next is noted for renew.
-- sent twice: there is nothing left to repair

local PLACES = 1000 -- lanes and processing lists that are counted; of more nobody knows the sum at one moment
local MANY_LANES = 32 -- more are kept in skip lists: Redis searches lists, in each claim

local q, start, limit, count_ms = named(), tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms(q.clock)
local lanes = redis.call("ZRANGE", q.lanes, start, start + limit - 1)
local holders = redis.call("ZRANGE", q.signed_on, start, start + limit - 1)
local removed, gone, sizes = 0, 0, {}

-- How many more ids there are in all places than records; nil if there are too many places. Each script leaves a record in
-- exactly one place, so any other number than 0 is what a torn log has left.
local function count_surplus()
  if redis.call("ZCARD", q.lanes) + redis.call("ZCARD", q.signed_on) > PLACES then return end
  local surplus = redis.call("ZCARD", q.scheduled) + redis.call("ZCARD", q.dead)
  surplus = surplus - redis.call("HLEN", q.jobs) - redis.call("HLEN", q.cancelled_in_lane)
  for _, lane in ipairs(redis.call("ZRANGE", q.lanes, 0, -1)) do surplus = surplus + redis.call("LLEN", q.lane .. lane) end
  for _, worker in ipairs(redis.call("ZRANGE", q.signed_on, 0, -1)) do
    surplus = surplus + redis.call("HLEN", q.running_of .. worker)
  end
  return surplus
end

-- How many jobs are in no place: 0 also if they were counted less than `count_ms` ago. -1: there may be some, because they
-- cannot be counted, or because ids without records hide them. Notes the number, and since when, for people.
local function count_lost()
  local counted, noted = unpack(redis.call("HMGET", q.clock, "counted", "lost"))
  if counted and now - counted < count_ms and now >= tonumber(counted) then return 0 end
  if not noted and redis.call("EXISTS", q.jobs) == 0 then return 0 end
  redis.call("HSET", q.clock, "counted", now)
  local surplus = count_surplus()
  local lost = surplus and -surplus or -1
  if lost > 0 then
    redis.call("HSET", q.clock, "lost", lost .. " " .. (string.match(noted or "", " (.*)$") or string.format("%.0f", now)))
  elseif noted then
    redis.call("HDEL", q.clock, "lost")
  end
  return math.max(-1, lost)
end

if start == 0 and redis.call("EXISTS", q.limits) == 1 then recount(q) end
for _, lane in ipairs(lanes) do
  local band, client = string.match(lane, "^(%-?%d+%+?):(.*)$")
  local first = redis.call("LINDEX", q.lane .. lane, 0)
  sizes[band] = (sizes[band] or 0) + 1
  if first then
    local turn = redis.call("ZSCORE", q.ring .. band, client)
    if not turn then index_lane(q, band, client, now) end
    if turn == "inf" then
      block(q, band, client)
      unblock(q, client)
    else
      redis.call("ZADD", q.bands, rank(band), band)
    end
    redis.call("ZADD", q.lanes, waiting_since(q, first, now), lane)
  else
    redis.call("ZREM", q.lanes, lane)
    removed = removed + 1
  end
end
if #lanes > MANY_LANES then use_skip_list(q.lanes) end
for band, size in pairs(sizes) do
  if size > MANY_LANES then use_skip_list(q.ring .. band) end
end
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, 0, "work") end
for i, deadline in ipairs(#holders > 0 and redis.call("ZMSCORE", q.workers, unpack(holders)) or {}) do
  if not deadline and redis.call("EXISTS", q.running_of .. holders[i]) == 1 then
    redis.call("ZADD", q.workers, now, holders[i])
  elseif not deadline then
    delete_worker(q, holders[i])
    gone = gone + 1
  end
end
tend_runners(q)
local lost = count_lost()
local next_start = math.max(#lanes, #holders) >= limit and start + limit - math.max(removed, gone) or 0
if start > 0 or next_start > 0 then redis.call("HSET", q.clock, "repaired", next_start) end
return { next_start, lost }
