-- claim: give a worker the next jobs, round-robin between clients, from the first queue that has any.
-- There are several queues, in the order of the worker.
-- queued -> running
-- uses: prelude turns
-- keys: paused workers running_of jobs bands turn lanes waiting_since failures crashes cancelled_in_lane
--       work_signal clock scratch ring lane
-- ARGV[1] worker      its name
-- ARGV[2] wanted      jobs, at most 500
-- ARGV[3] slots       how many jobs it can run at once, if it runs none now; else 0: then it gets no suspect, a job that
--                     has crashed a worker
--
-- returns for each queue {status, now, ids, records, counts}; counts: place, failures, crashes where there are any.
--         status: "ok"; "paused"; "unknown": the worker has to sign on; "suspect": these are suspects, or the next is;
--         "more": it stopped after many cancelled jobs, and there is more
-- sent twice: gives more jobs; those whose reply was lost the worker finds in `running` and releases

local worker, wanted, slots, queues = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), {}
for i = 1, #KEYS do queues[i] = named(i) end
local claim = { wanted = wanted, slots = slots, most = slots, suspects = 0, may_skip = 500 } -- cancelled jobs, empty lanes

-- Enter jobs into the processing list before they leave their lanes. An id without a record was left by a torn log.
-- Returns how many were assigned.
local function assign_jobs(q, ids, answer)
  local given, records, counts = answer[3], answer[4], answer[5]
  local held, claimed_at = {}, string.format(" %.0f", answer[2])
  local untried = "1" .. claimed_at
  local failures = q.has_failures and redis.call("HMGET", q.failures, unpack(ids)) or {}
  local crashes = q.has_crashes and redis.call("HMGET", q.crashes, unpack(ids)) or {}
  for i, record in ipairs(redis.call("HMGET", q.jobs, unpack(ids))) do
    if record then
      given[#given + 1], records[#records + 1] = ids[i], record
      held[#held + 1], held[#held + 2] = ids[i], untried
    end
    if record and (failures[i] or crashes[i]) then
      local failed, crashed = tonumber(failures[i] or 0), tonumber(crashes[i] or 0)
      held[#held] = (failed + crashed + 1) .. claimed_at
      counts[#counts + 1], counts[#counts + 2], counts[#counts + 3] = #given - 1, failed, crashed
    end
  end
  if #held > 0 then redis.call("HSET", q.running_of .. worker, unpack(held)) end
  return #held / 2
end

-- Find out which of the keys exist that are mostly missing: they need not be read for each job then.
local function find_rare_keys(q)
  local rare = { "paused", "failures", "crashes", "waiting_since", "cancelled_in_lane" }
  local found = redis.call("EXISTS", q.paused, q.failures, q.crashes, q.waiting_since, q.cancelled_in_lane)
  for _, name in ipairs(rare) do q["has_" .. name] = found > 0 and redis.call("EXISTS", q[name]) == 1 end
end

local function claim_from(q, now)
  local answer = { "ok", now, {}, {}, {} }
  redis.call("DEL", q.scratch) -- lets a full server be drained
  while claim.wanted > 0 do
    local band = redis.call("ZREVRANGE", q.bands, 0, 0)[1]
    if not band then break end
    local reason = claim.may_skip <= 0 and "more"
    if not reason then
      local turns = take_turns(q, band, claim, now)
      local ids = turns.ids
      local given = #ids > 0 and assign_jobs(q, ids, answer) or 0
      end_turns(q, band, turns, now)
      if #ids > 0 and q.has_waiting_since then redis.call("HDEL", q.waiting_since, unpack(ids)) end
      -- After a torn log a live job may be among them.
      if #ids > 0 and q.has_cancelled_in_lane then redis.call("HDEL", q.cancelled_in_lane, unpack(ids)) end
      claim.wanted = claim.wanted - given
      claim.may_skip = claim.may_skip - (#ids > 0 and #ids - given or #turns.clients)
      if given > 0 and claim.suspects == 0 then claim.slots = 0 end
      local is_in_vain = given == 0 and #ids > 0 -- all were left by a torn log: try again
      if turns.is_stopped and not is_in_vain then reason = "suspect" end
    end
    if reason then answer[1], claim.wanted = reason, 0 end
  end
  if claim.suspects > 0 then answer[1], claim.wanted = "suspect", 0 end
  local has_more = redis.call("EXISTS", q.bands) == 1
  if has_more then redis.call("ZADD", q.work_signal, 0, "work") else redis.call("DEL", q.work_signal) end
  return answer
end

-- Check all queues first: an error half way would leave jobs with a worker that does not know of them.
local answers = {}
for _, q in ipairs(queues) do
  if not redis.call("ZSCORE", q.workers, worker) then return { { "unknown", now_ms(q.clock), {}, {}, {} } } end
end
for i, q in ipairs(queues) do
  local now = now_ms(q.clock)
  find_rare_keys(q)
  answers[i] = { q.has_paused and "paused" or "ok", now, {}, {}, {} }
  if claim.wanted > 0 and not q.has_paused then
    answers[i] = claim_from(q, now)
  elseif not q.has_paused and redis.call("EXISTS", q.bands) == 1 then
    redis.call("ZADD", q.work_signal, 0, "work") -- the worker may have been woken by this signal, and took it
  end
end
return answers
