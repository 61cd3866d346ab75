-- lost_jobs: count jobs that have a record and are in no place, after a torn log.
-- created when first called

local PLACES = 1000 -- lanes and processing lists that are counted; of more nobody knows the sum at one moment

-- How many more ids there are in all places than records; nil if there are too many places. Each script leaves a record in
-- exactly one place, so any other number than 0 is what a torn log has left.
local function count_surplus(q)
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
local function count_lost(q, now, count_ms)
  local counted, noted = unpack(redis.call("HMGET", q.clock, "counted", "lost"))
  if counted and now - counted < count_ms and now >= tonumber(counted) then return 0 end
  if not noted and redis.call("EXISTS", q.jobs) == 0 then return 0 end
  redis.call("HSET", q.clock, "counted", now)
  local surplus = count_surplus(q)
  local lost = surplus and -surplus or -1
  if lost > 0 then
    redis.call("HSET", q.clock, "lost", lost .. " " .. (string.match(noted or "", " (.*)$") or string.format("%.0f", now)))
  elseif noted then
    redis.call("HDEL", q.clock, "lost")
  end
  return math.max(-1, lost)
end
