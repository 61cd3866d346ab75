-- claim: settle jobs that have succeeded, and give the worker the next ones, from the first queues that have any. There are
-- several queues: first those to claim from, in the order of the worker.
-- uses: prelude settle claim assign blocking task_pauses
-- ARGV[1] worker      its name
-- ARGV[2] wanted      jobs, at most 500
-- ARGV[3] slots       how many jobs it can run at once, if it runs none now; else 0: then it gets no suspect, a job that
--                     has crashed a worker
-- ARGV[4] last        place of the last queue to claim from
-- ARGV[5] most        outcomes kept in a queue
-- ARGV[6] aside       how many clients get no job here, because their jobs have crashed processes lately
-- ARGV[...] list      of each of these clients: place of its queue, name; then of each queue with finished jobs: its place,
--                     the number of arguments that follow, and of each job: id, ms to keep, outcome ("": only the id); at
--                     most 500 jobs
--
-- returns {number of stale ids, these ids, then of each queue with something to tell: its place, status, now, number of
--         jobs, of counts, id and record of each job, counts: index of the job, failures, crashes where there are any}
--         status: "ok"; "unknown": the worker has to sign on; "suspect": these are suspects, or the next is;
--         "more": it stopped after many jobs that were cancelled, or whose task is paused, and there is more;
--         " limited" follows if the queue has limits, " timed" if its clients take turns by time
-- sent twice: the ids are stale; gives more jobs; those whose reply was lost the worker finds in `running` and releases

local worker, last, most, tags, list = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5]), KEYS, ARGV
local slots, aside = tonumber(ARGV[3]), tonumber(ARGV[6])
local claim = { wanted = tonumber(ARGV[2]), slots = slots, most = slots, suspects = 0, found = 0, may_skip = 500, may_hold = 200 }
local queues, reply = {}, { 0 }

local function has(q, key)
  return q.has_rare and redis.call("EXISTS", key) == 1
end

-- Read what each step needs. Most queues have none of the rare keys, or limits alone: then nothing is looked up in the others.
-- Some of them matter only where jobs end.
local function open_queue(place, has_ends)
  local q = queues[place]
  if q then return q end
  q = named(place)
  queues[place], q.running, q.now = q, q.running_of .. worker, now_ms(q.clock)
  for i = 7, 5 + 2 * aside, 2 do
    if tonumber(list[i]) == place then q.aside = add_aside(q.aside, list[i + 1]) end
  end
  local rare = has_ends and redis.call("EXISTS", q.limits, q.failures, q.crashes, q.waiting_since, q.cancelled_in_lane,
      q.paused, q.runners, q.errors, q.retrying, q.progress, q.digests, q.cancel_requests, q.waiters, q.step_jobs)
    or redis.call("EXISTS", q.limits, q.failures, q.crashes, q.waiting_since, q.cancelled_in_lane, q.paused, q.runners)
  q.has_limits = rare > 0 and redis.call("EXISTS", q.limits) == 1
  q.has_rare = rare > (q.has_limits and 1 or 0)
  q.has_failures, q.has_crashes, q.has_waiting_since = has(q, q.failures), has(q, q.crashes), has(q, q.waiting_since)
  q.has_cancelled_in_lane = has(q, q.cancelled_in_lane)
  q.runner = has(q, q.runners) and worker
  redis.call("DEL", q.scratch) -- lets a full server be drained
  return q
end

-- The right to claim is checked queue by queue. What was assigned before must not get lost: then the worker hears that
-- it is unknown when it asks again.
local function claim_from(place, band)
  local q = open_queue(place)
  if not redis.call("ZRANK", q.workers, worker) then
    claim.wanted = 0
    return claim.found == 0 and begin_answer(q, place, "unknown", reply)
  end
  local room, has_resumed = math.huge, false
  if q.has_limits then
    room, has_resumed = open_limits(q)
  end
  if room <= 0 or (has(q, q.paused) and open_pauses(q)) then return end
  if has_resumed then band = redis.call("ZREVRANGE", q.bands, "0", "0")[1] end
  local others = math.max(0, claim.wanted - room) -- for other queues
  claim.wanted = claim.wanted - others
  if take_jobs(q, band, claim, reply, begin_answer(q, place, "ok", reply)) then claim.wanted = claim.wanted + others end
  signal_rest(q)
end

-- The place of the next queue that has work, found by halves; the last one if none has.
local function skip_empty(place)
  local bands, high = {}, last
  for i = place, last do bands[i] = tags[i] .. "bands" end
  while place < high do
    local middle = math.floor((place + high) / 2)
    local has_work = redis.call("EXISTS", unpack(bands, place, middle)) > 0
    if has_work then high = middle else place = middle + 1 end
  end
  return place
end

local at, place = 7 + 2 * aside, 1
while list[at] do
  local q, ends = open_queue(tonumber(list[at]), true), at + 1 + list[at + 1]
  -- A worker that was considered dead may be alive and finish late. By then its jobs were given to others.
  local mine, stale, entries = split_held(q.running, list, 3, at + 2, ends)
  finish_held(q, list, mine, entries, most, q.now, "succeeded")
  for i = 1, #stale do reply[#reply + 1] = stale[i] end
  at = ends + 1
end
reply[1] = #reply - 1
while claim.wanted > 0 and place <= last do
  local band = redis.call("ZREVRANGE", tags[place] .. "bands", "0", "0")[1]
  if band then claim_from(place, band) end
  place = band and place + 1 or skip_empty(place + 1)
end
if #reply > 1 + reply[1] then return reply end
for i = 1, last do -- an idle worker has to sign on before there is work
  if not redis.call("ZRANK", tags[i] .. "workers", worker) then
    begin_answer(open_queue(i), i, "unknown", reply)
    return reply
  end
end
return reply
