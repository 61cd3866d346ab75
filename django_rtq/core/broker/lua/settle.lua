-- settle: end runs of a worker. Jobs that have succeeded most often come with a claim.
-- uses: prelude lanes schedule unique outcomes settle failures running_counts members steps
-- KEYS[2] running     the worker's processing list
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[...] rows      of each job: verb, id, ms, text, failures to count (1, or 0 for a job that this worker could not run); at
--                     most 500. What the verbs say, and what their ms and text are:
--                     ack            it has succeeded: how long to keep the outcome, the outcome ("": only the id)
--                     expire         nobody started it before it expired: the same
--                     finish_cancel  it was asked to stop, and did: the same
--                     retry          its next attempt is later: when, the failure as one line of JSON
--                     bury           it is a dead letter, until a person requeues or discards it: nothing, the failure
--                     release        it did not run, and is the next to be claimed: nothing. In the order of their claim
--                     suspend        it goes on in another run: when at the latest, what it waits for, as steps.lua has it
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, most, rows = named(), tonumber(ARGV[1]), ARGV
local now = now_ms(q.clock)
local FINISHED = { ack = "succeeded", expire = "expired", finish_cancel = "cancelled" }

local mine, stale, entries = split_held(q.running, rows, 5, 3)
q.has_limits = redis.call("EXISTS", q.limits) == 1
q.runner = redis.call("EXISTS", q.runners) == 1

-- The places, ids and entries of the jobs of each verb.
local verbs, places, ids_of, held = {}, {}, {}, {}
for n = 1, #mine do
  local verb = rows[mine[n] - 1]
  if not places[verb] then verbs[#verbs + 1], places[verb], ids_of[verb], held[verb] = verb, {}, {}, {} end
  local size = #places[verb] + 1
  places[verb][size], ids_of[verb][size], held[verb][size] = mine[n], rows[mine[n]], entries[n]
end

for _, verb in ipairs(verbs) do
  local ids, state = ids_of[verb], FINISHED[verb]
  if state then
    if state ~= "succeeded" then note_members(q, ids, "gone") end -- else none is a member: see finish_members
    finish_held(q, rows, places[verb], held[verb], most, now, state)
  else
    finish_cancelled(q, ids, now)
    local records, failed, dead = redis.call("HMGET", q.jobs, unpack(ids)), 0, 0
    for n = 1, #ids do
      local place = verb == "release" and #ids + 1 - n or n -- the first of those is pushed last, to the front
      local id, i, record = ids[place], places[verb][place], records[place]
      local ms, text, failures = rows[i + 1], rows[i + 2], rows[i + 3]
      -- Without a record it is finished: it had a cancel request; or a torn log had given it to two, and one finished first.
      local what = record and verb
      if what == "retry" then
        schedule(q, select(2, read_header(record)), now + ms, id)
        redis.call("ZADD", q.retrying, now + ms, id)
        -- Of the failures of a job whose task no worker knows, the first is kept: it shows since when.
        if failures ~= "0" or not is_same_error(q.errors, id, text) then
          failed = failed + record_failure(q, id, failures, text)
        end
      elseif what == "bury" then
        note_members(q, { id }, "dead")
        redis.call("ZADD", q.dead, now, id)
        failed, dead = failed + record_failure(q, id, failures, text), dead + 1
        notify_waiters(q, { id })
        release_unique(q, { id })
      elseif what == "release" then -- where turns go by time, the time that was charged is given back instead
        push_front(q, id, record, now, not (q.has_limits and are_timed(q, held[verb])))
      elseif what == "suspend" then
        suspend(q, id, record, ms, text, now)
      end
      leave(q, q.running, { id })
    end
    if failed > 0 then count(q.stats, now, "failed", failed) end
    if dead > 0 then count(q.stats, now, "dead", dead) end
    if q.has_limits then count_ended(q, held[verb], verb == "release") end
  end
end
return stale
