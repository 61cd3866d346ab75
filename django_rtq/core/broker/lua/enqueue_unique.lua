-- enqueue_unique: add unique jobs: of those with the same digest one is live.
-- — -> queued, or scheduled when it has a time, or when it runs after the owner of its digest
-- uses: prelude enqueue unique unique_enqueue unique_preview known_ids waiting
-- keys: jobs finished finished_before cancelled_in_lane scheduled retrying dead failures crashes digests unique workers
--       running_of bands turn lanes waiting_since work_signal due_signal clock ring lane stats scheduled_by_client
--       waiting_limits running_counts blocked step_jobs runners signed_on
-- ARGV[1] together    "1": add all jobs or none, else ""
-- ARGV[...] jobs      of each: those of enqueue_many (id, band, max_crashes, client, due, expires, front, body), and
--                     digest ("": not unique), until when it holds it ("start", "done"), for how many ms at the most,
--                     and what to do if another job holds it: "replace" it, "rerun" it, or nothing ("return", "raise")
--
-- returns for each job "ok"; "exists" if its id is known; "duplicate <id>" of the owner of its digest;
--         "after <id>" if it was added, and waits for the end of that job; "full ..." as enqueue_many
-- sent twice: every id exists the second time, or is the same duplicate; a replaced one gets its time again

local q, together, jobs = named(), ARGV[1] == "1", ARGV
local now, answers, taken = now_ms(q.clock), {}, 0
local rooms = redis.call("EXISTS", q.waiting_limits) == 1 and {}

local function enqueue(job)
  local first, successor
  if job.digest ~= "" then first, successor = unique_owner(q, job.digest) end
  if first and successor == job.id then return "after " .. first end
  if is_known(q, job.id, is_recent(job.id, now)) then return "exists" end
  local full = rooms and is_new(q, job, first, successor) and take_place(q, rooms, job.client)
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
  local refused = preview(q, jobs, now)
  if refused then return refused end
  rooms = false -- all have their places
end
for place = FIRST, #jobs, #PARTS do answers[#answers + 1] = enqueue(read_job(jobs, place, now)) end
if taken > 0 then count(q.stats, now, "enqueued", taken) end
return answers
