-- assign: take the next jobs of a queue, and put them into the reply of a claim.
-- uses: turns running_counts blocking limits runners

-- Add a queue to the reply: its place, status, the time, number of jobs, number of counts. Returns the position before.
local function begin_answer(q, place, status, reply)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = place, status, q.now, 0, 0
  return n
end

-- Enter jobs into the processing list before they leave their lanes. An id without a record was left by a torn log.
-- `head` is the position in the reply before this queue. Returns how many were assigned.
-- Redis keeps a hash of up to 512 fields as a list, which it searches for each field, unless a value has over 64 bytes: so
-- the first of many jobs gets zeros in front.
local function assign_jobs(q, ids, owners, reply, head, counts)
  local held, claimed_at, n, h, clients = {}, " " .. q.now, #reply, 0, q.has_limits and {}
  local untried = "1" .. claimed_at
  local failures = q.has_failures and redis.call("HMGET", q.failures, unpack(ids)) or {}
  local crashes = q.has_crashes and redis.call("HMGET", q.crashes, unpack(ids)) or {}
  for i, record in ipairs(redis.call("HMGET", q.jobs, unpack(ids))) do
    if record then
      reply[n + 1], reply[n + 2], held[h + 1], held[h + 2] = ids[i], record, ids[i], untried
      n, h = n + 2, h + 2
    end
    if record and (failures[i] or crashes[i]) then
      local failed, crashed, c = tonumber(failures[i] or 0), tonumber(crashes[i] or 0), #counts
      held[h] = (failed + crashed + 1) .. claimed_at
      counts[c + 1], counts[c + 2], counts[c + 3] = (n - head - 5) / 2 - 1, failed, crashed
    end
    if record and clients then
      held[h] = held[h] .. " " .. owners[i]
      clients[h / 2] = owners[i]
    end
  end
  if q.runner ~= false and h > 0 then note_runner(q, q.runner, held, 2) end
  if h > 64 then held[2] = string.rep("0", 64) .. held[2] end
  if h > 0 then redis.call("HSET", q.running, unpack(held)) end
  if clients and h > 0 then count_started(q, clients) end
  return h / 2
end

-- Complete what a reply says of a queue, behind its jobs.
local function end_answer(q, reply, head, status, counts)
  reply[head + 2], reply[head + 4], reply[head + 5] = status, (#reply - head - 5) / 2, #counts
  if q.has_limits then reply[head + 2] = status .. (q.has_times and " timed" or " limited") end
  for i = 1, #counts do reply[#reply + 1] = counts[i] end
end

-- Signal whether there is work left that may start.
local function signal_rest(q)
  local has_more = (q.has_more or redis.call("EXISTS", q.bands) == 1) and not (q.has_limits and is_full(q))
  if has_more then redis.call("ZADD", q.work_signal, "0", "work") else redis.call("DEL", q.work_signal) end
end

-- Take the jobs of the next turns, from the highest band on. Returns whether the worker may take others beside them.
local function take_jobs(q, band, claim, reply, head)
  local counts, status = {}, "ok"
  while band and status == "ok" do
    local turns = take_turns(q, band, claim)
    local ids = turns.ids
    local given = #ids > 0 and assign_jobs(q, ids, turns.owners, reply, head, counts) or 0
    q.has_more = end_turns(q, band, turns)
    if turns.blocked and next(turns.blocked) then wait_for_rates(q, turns.clients, turns.blocked) end
    if #ids > 0 and q.has_waiting_since then redis.call("HDEL", q.waiting_since, unpack(ids)) end
    -- After a torn log a live job may be among them.
    if #ids > 0 and q.has_cancelled_in_lane then redis.call("HDEL", q.cancelled_in_lane, unpack(ids)) end
    claim.wanted, claim.found = claim.wanted - given, claim.found + given
    claim.may_skip = claim.may_skip - (#ids > 0 and #ids - given or math.max(1, #turns.clients))
    if given > 0 and claim.suspects == 0 then claim.slots = 0 end
    local is_in_vain = given == 0 and #ids > 0 -- all were left by a torn log: try again
    if turns.is_stopped and not is_in_vain then status = "suspect" end
    local passed = q.aside and q.aside.bands or 0 -- bands in which only clients are left that get no job
    band = claim.wanted > 0 and redis.call("ZREVRANGE", q.bands, passed, passed)[1]
    if band and claim.may_skip <= 0 and status == "ok" then status = "more" end
  end
  if claim.suspects > 0 then status = "suspect" end
  if status ~= "ok" then claim.wanted = 0 end
  end_answer(q, reply, head, status, counts)
  return status == "ok"
end
