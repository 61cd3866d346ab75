-- queue_position: what a job waits for, and its position in its lane. Reads only. It reads no more than DEEP jobs.
-- uses: prelude unique rates limits task_pauses
-- ARGV[1] id          the job
--
-- returns {now, workers whose lease lasts, 100 at most, its position in its lane, from 0, clients whose turn comes before
--         that of its client, the job for whose end it waits, last run of promote, 1 if no worker is idle, the pause of its
--         task; of the queue, then of its client: its pause, the most jobs it may run if it runs as many, when it may
--         start a job if only its rate stops it}; "" where there is none

local q, id = named(), ARGV[1]
local DEEP = 1000
local now, record = now_ms(q.clock), redis.call("HGET", q.jobs, id)

local band, client = read_header(record or "")

local function place_in_lane()
  local lane = q.lane .. band .. ":" .. client
  return redis.call("LPOS", lane, id, "MAXLEN", DEEP) or (redis.call("LLEN", lane) > DEEP and DEEP or "")
end

-- Clients that are blocked have no turn. Those of higher bands all come before it.
local function clients_before()
  local turn = redis.call("ZSCORE", q.ring .. band, client)
  if not turn or turn == "inf" then return "" end
  local n = redis.call("ZRANK", q.ring .. band, client)
  local above = "(" .. (redis.call("ZSCORE", q.bands, band) or "inf")
  for _, other in ipairs(redis.call("ZRANGEBYSCORE", q.bands, above, "+inf", "LIMIT", 0, 100)) do
    n = n + redis.call("ZCOUNT", q.ring .. other, "-inf", "(inf")
  end
  return n
end

local function find_predecessor()
  local _, _, digest = read_digest(q, id)
  local first = digest and redis.call("GET", q.unique .. digest)
  return first and first ~= id and is_successor(q, id) and select(4, read_digest(q, first)) == id and first or ""
end

-- Why the queue and its client may not start a job.
local function find_limits()
  local paused = redis.call("HGET", q.paused, "queue") or ""
  if redis.call("EXISTS", q.limits) == 0 then return paused, "", "", "", "", "" end
  local limits = redis.call("HMGET", q.limits, "queue", "clients", "client:" .. client, "paused:" .. client)
  local running = redis.call("HMGET", q.running_counts, "queue", "client:" .. client)
  local function most_of(values, n)
    local most = limit_of(values, "max_running")
    return most and tonumber(n or 0) >= most and most or ""
  end
  local _, queue_moment = queue_room(q)
  local _, moments = read_rooms(q, { client })
  return paused, most_of(values_of(limits[1]), running[1]), queue_moment or "",
    limits[4] or "", most_of(values_of(limits[3], limits[2]), running[2]), moments[1] or ""
end

local alive = #redis.call("ZRANGEBYSCORE", q.workers, now, "+inf", "LIMIT", 0, 100)
local promoted = redis.call("HGET", q.clock, "promoted") or ""
-- An idle worker takes the signal at once.
local is_busy = alive > 0 and redis.call("EXISTS", q.work_signal) == 1 and 1 or ""
return { now, alive, place_in_lane(), clients_before(), find_predecessor(), promoted, is_busy, pause_of(q, record),
  find_limits() }
