-- time_turns: turns by the time that jobs used, where `fair_by` of the queue is "seconds". A turn is a time, ms divided by
-- the weight of the client. A claim moves it on by the average time of the client's last jobs, and the end of a job by what
-- the job has used instead. Running jobs that take longer are charged when their client comes to the head of its ring. A
-- client without waiting jobs stays in the ring while its turn is later than those of others.
-- created when first called
-- uses: weights used_times

local DEBT_MS = 3600000 -- how far behind the others a client may be that was blocked
local ROUNDS = 20 -- how often a claim looks at the first clients of a ring

-- Charge the first clients of a ring for what their running jobs have used by now, until the first ones are right.
local function charge_running(q, ring, wanted)
  for _ = 1, ROUNDS do
    local clients, is_late = {}, false
    local found = first_turns(ring, wanted)
    for i = 1, #found, 2 do clients[#clients + 1] = found[i] end
    local strides = read_strides(q, clients)
    for i, used in ipairs(read_used(q, clients)) do
      local charge = charge_of(used, q.now)
      if charge >= used.charged + 1 then
        move_turns(q, used, (charge - used.charged) * strides[i])
        used.charged, is_late = charge, true
        write_used(q, used)
      end
    end
    if not is_late then return end
  end
end

-- Give turns to those who have entered a ring: behind its first by what a job more would be charged.
local function place_by_time(q, band)
  local ring, places = q.ring .. band, {}
  local newcomers = newcomers_of(ring)
  if #newcomers == 0 then return end
  local first = tonumber(first_turns(ring, 1)[2] or redis.call("HGET", q.job_times, "turn:" .. band) or 0)
  local strides = read_strides(q, newcomers)
  for i, used in ipairs(read_used(q, newcomers)) do
    local turn = first + (used.running + 1) * estimate(used) * strides[i] + i / 1000
    if used.turn then turn = math.max(turn, math.min(used.turn, first + DEBT_MS)) end
    if used.running > 0 and not used.turn then count_anew(used, q.now) end
    if used.running > 0 or used.turn then
      used.turn = nil
      write_used(q, used)
    end
    places[2 * i - 1], places[2 * i] = string.format("%.17g", turn), used.client
  end
  redis.call("ZADD", ring, "XX", unpack(places))
end

-- How far a job moves the turn of each client on.
local function read_steps(q, clients)
  local steps = read_strides(q, clients)
  for i, used in ipairs(read_used(q, clients)) do steps[i] = steps[i] * estimate(used) end
  return steps
end

-- A client is blocked: keep its turn, which was the first of its ring.
local function keep_turn(q, band, client, turn)
  local used = read_used(q, { client })[1]
  used.turn = turn
  write_used(q, used)
  redis.call("HSET", q.job_times, "turn:" .. band, string.format("%.17g", turn))
end

-- Charge clients for jobs that start. `owners` has the number of jobs of each: see running_counts.
local function charge_starts(q, owners)
  for _, used in ipairs(read_used(q, owners)) do
    count_starts(used, owners[used.client], q.now)
    write_used(q, used)
  end
end

-- If no job waits, nobody is behind anybody. Returns whether any waits.
local function has_waiting(q)
  if redis.call("EXISTS", q.lanes) == 1 then return true end
  for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, -1)) do redis.call("DEL", q.ring .. band) end
  redis.call("DEL", q.bands)
  return false
end
