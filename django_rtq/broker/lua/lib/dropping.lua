-- dropping: make room in a full queue (on_full="drop_oldest").
-- The oldest job is in the lane whose first job waits longest: of all lanes, or of those of the client that is full. It is
-- the first there; or the last, if that waits longer, because others were put in front of it. Jobs that wait for their
-- time, or for the next attempt, are not dropped. Dropped jobs end as cancelled.
-- created when first called
-- uses: prelude lanes outcomes waiting members

local MORE = 100 -- ids that one call may remove, beside one for each of its own jobs (rule 6)

-- How a call drops jobs: "<most outcomes> <keep_ms> <outcome>". Nil for "": it does not.
local function read_drops(text, jobs)
  local most, keep_ms, outcome = string.match(text, "^(%d+) (%d+) (.*)$")
  return most and { most = tonumber(most), keep_ms = keep_ms, outcome = outcome, left = MORE + jobs, ids = {} }
end

local function oldest_lane(q, client)
  if not client then return redis.call("ZRANGE", q.lanes, 0, 0)[1] end
  local oldest, since = nil, math.huge
  for _, band in ipairs(bands_of(q, client)) do
    local lane = band .. ":" .. client
    local score = tonumber(redis.call("ZSCORE", q.lanes, lane) or math.huge)
    if score < since then oldest, since = lane, score end
  end
  return oldest
end

-- The older of the first and the last id of a lane, and whether it is the last.
local function older_end(q, key, now)
  local first, last = redis.call("LINDEX", key, 0), redis.call("LINDEX", key, -1)
  if first and waiting_since(q, last, now) < waiting_since(q, first, now) then return last, true end
  return first, false
end

-- Cancel a job that waits in a lane, and stays there until it is removed: claims skip ids without a record.
local function cancel_dropped(q, drops, id, record, now)
  store_outcomes(q, { id, drops.keep_ms, with_task(drops.outcome, record) }, { 1 }, drops.most, now)
  note_members(q, { id }, "gone")
  delete_jobs(q, { id })
  count(q.stats, now, "dropped", 1)
  drops.ids[#drops.ids + 1] = id
end

-- Remove the oldest job of a client, or of the queue, or an id that a cancelled job has left there. Returns whether there
-- was any lane.
local function drop_oldest(q, drops, rooms, client, now)
  local lane = oldest_lane(q, client)
  if not lane then return false end
  local key, of_client = q.lane .. lane, rooms.clients[string.match(lane, "^[^:]*:(.*)$")]
  local id, is_last = older_end(q, key, now)
  local record = id and redis.call("HGET", q.jobs, id)
  if record then
    cancel_dropped(q, drops, id, record, now)
    rooms.queue.waiting = rooms.queue.waiting - 1
  end
  if of_client and (record or id and not of_client.is_exact) then of_client.waiting = of_client.waiting - 1 end
  if id then
    redis.call(is_last and "RPOP" or "LPOP", key)
    redis.call("HDEL", q.cancelled_in_lane, id)
  end
  local first = redis.call("LINDEX", key, 0)
  if not first then leave_ring(q, lane) end
  if first and not is_last then redis.call("ZADD", q.lanes, waiting_since(q, first, now), lane) end
  drops.left = drops.left - 1
  return true
end

-- Take a place for a new job, and drop the oldest ones until there is one. Returns nothing, or why there is none. If too many
-- jobs would have to go at once, as after a lower limit, the job is added all the same, and the next calls go on.
local function make_room(q, drops, rooms, client, now)
  local full = take_place(q, rooms, client)
  if full and not fits_alone(q, rooms, client) then return full end
  while full and drops.left > 0 do
    local of_client = string.find(full, "full client", 1, true)
    if not drop_oldest(q, drops, rooms, of_client and client, now) then return full end
    full = take_place(q, rooms, client)
  end
end
