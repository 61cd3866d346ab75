-- enqueue_unique: add unique jobs: of those with the same digest one is live.
-- — -> queued, or scheduled when it has a time, or when it runs after the owner of its digest
-- uses: prelude enqueue unique unique_enqueue unique_preview known_ids waiting dropping
-- keys: jobs finished finished_before cancelled_in_lane scheduled retrying dead failures crashes digests unique workers
--       running_of bands turn lanes waiting_since work_signal due_signal clock ring lane stats
--       scheduled_by_client waiting_limits running_counts blocked errors progress cancel_requests
--       results recent_results result_times result_expiry no_outcome waiters finished_signal ended_members
--       step_jobs steps runners signed_on
-- ARGV[1] mode        "1": add all jobs or none, else ""; then " <most outcomes> <keep_ms> <outcome>" if jobs that do not fit
--                     take the places of the oldest ones, which end with this outcome
-- ARGV[...] jobs      of each: those of enqueue_many (id, band, max_crashes, client, due, expires, front, body), and
--                     digest ("": not unique), until when it holds it ("start", "done"), for how many ms at the most,
--                     and what to do if another job holds it: "replace" it, "rerun" it, or nothing ("return", "raise")
--
-- returns for each job "ok"; "exists" if its id is known; "duplicate <id>" of the owner of its digest;
--         "after <id>" if it was added, and waits for the end of that job; "full ..." as enqueue_many. Then the ids of
--         the jobs that were dropped
-- sent twice: every id exists the second time, or is the same duplicate; a replaced one gets its time again. A duplicate is
--         added if the owner of its digest was dropped for a later job of the call

local q, jobs, is_together, how = named(), ARGV, string.match(ARGV[1], "^(1?) ?(.*)$")
local now, answers, taken, together = now_ms(q.clock), {}, 0, is_together == "1"
local rooms = redis.call("EXISTS", q.waiting_limits) == 1 and {}
local drops = rooms and how ~= "" and read_drops(how, math.floor(#jobs / #PARTS))

local function find_place(client)
  if drops then return make_room(q, drops, rooms, client, now) end
  return take_place(q, rooms, client)
end

local function enqueue(job)
  local first, successor
  if job.digest ~= "" then first, successor = unique_owner(q, job.digest) end
  if first and successor == job.id then return "after " .. first end
  if is_known(q, job.id, is_recent(job.id, now)) then return "exists" end
  local full = rooms and is_new(q, job, first, successor) and find_place(job.client)
  if full then return full end
  if not first then
    insert_job(q, job, now)
    taken = taken + 1
    return "ok"
  end
  if job.conflict == "replace" then replace_job(q, first, job, now) end
  if job.conflict == "rerun" and enqueue_after(q, first, successor, job) then
    taken = taken + 1
    return "after " .. first
  end
  return "duplicate " .. first
end

if together and rooms then
  local refused, clients = preview(q, jobs, now, drops)
  if refused then return refused end
  for _, client in ipairs(drops and clients or {}) do find_place(client) end
  rooms = false -- all have their places
end
for place = FIRST, #jobs, #PARTS do answers[#answers + 1] = enqueue(read_job(jobs, place, now)) end
if taken > 0 then count(q.stats, now, "enqueued", taken) end
for _, id in ipairs(drops and drops.ids or {}) do answers[#answers + 1] = id end
return answers
