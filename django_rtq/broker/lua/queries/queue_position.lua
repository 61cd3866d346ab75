-- queue_position: what a job waits for, and its position in its lane. Reads only. It reads no more than DEEP jobs.
-- uses: prelude unique limits
-- keys: clock jobs paused workers lane scheduled retrying digests unique limits running_counts
--       rate_times
-- ARGV[1] id          the job
--
-- returns {now, paused since, workers whose lease lasts, 100 at most, its position in its lane, from 0, the job for
--         whose end it waits, last run of promote, since when its client is paused, 1 if its client runs as many jobs
--         as it may, 1 if the queue does, when its client and the queue may start a job if only their rates stop them};
--         "" where there is none
-- sent twice: changes nothing

local q, id = named(), ARGV[1]
local DEEP = 1000
local now, record = now_ms(q.clock), redis.call("HGET", q.jobs, id)

local function place_in_lane()
  local band, client = read_header(record or "")
  local lane = q.lane .. band .. ":" .. client
  return redis.call("LPOS", lane, id, "MAXLEN", DEEP) or (redis.call("LLEN", lane) > DEEP and DEEP or "")
end

local function find_predecessor()
  local _, _, digest = read_digest(q, id)
  local first = digest and redis.call("GET", q.unique .. digest)
  return first and first ~= id and is_successor(q, id) and select(4, read_digest(q, first)) == id and first or ""
end

-- Why its client, or the queue, may not start a job.
local function find_limits()
  if redis.call("EXISTS", q.limits) == 0 then return "", "", "", "", "" end
  local _, client = read_header(record or "")
  local pause = redis.call("HGET", q.limits, "paused:" .. client)
  local rooms, moments = read_rooms(q, { client })
  local queue_left, queue_moment = queue_room(q)
  local is_at_limit = not pause and rooms[1] <= 0 and not moments[1]
  local is_queue_at_limit = queue_left <= 0 and not queue_moment
  return pause and string.match(pause, "^%d+") or "", is_at_limit and 1 or "", is_queue_at_limit and 1 or "",
    moments[1] or "", queue_moment or ""
end

local alive = #redis.call("ZRANGEBYSCORE", q.workers, now, "+inf", "LIMIT", 0, 100)
local promoted = redis.call("HGET", q.clock, "promoted") or ""
return { now, redis.call("GET", q.paused) or "", alive, place_in_lane(), find_predecessor(), promoted, find_limits() }
