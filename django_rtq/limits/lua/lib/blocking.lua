-- blocking: clients that may not start a job because of a limit.
-- Such a client stays in its ring, behind all others, with the turn "inf", until it may. Claims find that out when its turn
-- comes, so nothing else has to know the limits. If its rate alone stops it, it is also in `next_starts`.
-- created when first called
-- uses: prelude lanes limits rates

-- Let a client wait in this band until it may start a job.
local function block(q, band, client)
  local bands = redis.call("HGET", q.blocked, client)
  if not string.find(" " .. (bands or "") .. " ", " " .. band .. " ", 1, true) then
    redis.call("HSET", q.blocked, client, bands and bands .. " " .. band or band)
  end
  redis.call("ZADD", q.ring .. band, "inf", client)
end

-- Note when those of these clients that are blocked may start a job, as far as that is up to their rate.
local function wait_for_rates(q, clients, is_blocked)
  local waiting = {}
  for c, client in ipairs(clients) do waiting[#waiting + 1] = is_blocked[c] and client end
  local _, moments = read_rooms(q, waiting)
  for i, member in ipairs(members_of(waiting)) do
    if moments[i] then wait_for_rate(q, member, moments[i]) end
  end
end

-- Let a blocked client take turns again, if it may start a job.
local function unblock(q, client)
  local bands = redis.call("HGET", q.blocked, client)
  if not bands then return end
  local rooms, moments = read_rooms(q, { client })
  if moments[1] then wait_for_rate(q, "client:" .. client, moments[1]) end
  if rooms[1] <= 0 then return end
  for band in string.gmatch(bands, "%S+") do
    local ring = q.ring .. band
    if redis.call("ZSCORE", ring, client) == "inf" then
      if redis.call("EXISTS", q.lane .. band .. ":" .. client) == 1 then
        redis.call("ZADD", q.bands, rank(band), band)
        redis.call("ZADD", ring, redis.call("INCR", q.turn), client)
        redis.call("ZADD", q.work_signal, "0", "work")
      else
        redis.call("ZREM", ring, client)
      end
    end
  end
  redis.call("HDEL", q.blocked, client)
  redis.call("ZREM", q.next_starts, "client:" .. client)
end

-- Let clients, and the queue, go on whose next start is due, up to `most`. Returns how many.
local function resume(q, most)
  q.now = q.now or now_ms(q.clock)
  local due = redis.call("ZRANGEBYSCORE", q.next_starts, "-inf", q.now, "LIMIT", "0", most)
  if #due > 0 then redis.call("ZREM", q.next_starts, unpack(due)) end
  for _, member in ipairs(due) do
    local client = string.match(member, "^client:(.*)$")
    if client then unblock(q, client) end
    if not client and redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
  end
  return #due
end

-- resume(). Returns when the next one is due, if any.
local function resume_due(q, most)
  resume(q, most)
  return tonumber(redis.call("ZRANGE", q.next_starts, "0", "0", "WITHSCORES")[2])
end

-- Begin a claim with limits: how many more jobs the queue may start. Lets clients go on whose next start is due, so that
-- busy workers need no scheduler. Returns also whether any do.
local function open_limits(q)
  q.limits_read = read_limits_of_queue(q)
  local room, moment = queue_room(q)
  q.has_weights = q.has_times or q.limits_read.weights
  if moment then wait_for_rate(q, "queue", moment) end
  return room, room > 0 and resume(q, 10) > 0
end
