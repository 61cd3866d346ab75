-- enqueue_many: add jobs, each once however often it is sent. Of those with the same digest one is live.
-- uses: prelude enqueue bulk_enqueue unique_enqueue preview
-- ARGV[1] together    "1": add all jobs or none, else ""
-- ARGV[2] size        how many arguments a job has: 12, or 8 if none has a digest
-- ARGV[...] jobs      of each, as in enqueue: id, band, max_crashes, client, due ("+ms" from now, "ms" since 1970,
--                     "" now), expires ("+ms" after it is due), front, body; digest ("": not unique), until when it holds
--                     it ("start", "done"), for how many ms at the most, and what to do if another job holds it:
--                     "replace" it, "rerun" it, or nothing ("return", "raise"); at most 500, or 100 if one has a digest
--
-- returns for each job "ok"; "exists" if its id is known: live, or finished lately; "duplicate <id>" of the owner of its
--         digest; "after <id>" if it was added, and waits for the end of that job; "full queue" or "full client" with how
--         many wait and may wait; "full" if it was not added because another did not fit
-- sent twice: every id exists the second time, or is the same duplicate; a replaced one gets its time again

local q, together, size, jobs = named(), ARGV[1] == "1", tonumber(ARGV[2]), ARGV
local now, place, answers, added = now_ms(q.clock), FIRST, {}, 0
local rooms = redis.call("EXISTS", q.waiting_limits) == 1 and {}

if together and rooms then
  local refused = preview(q, jobs, size)
  if refused then return refused end
  rooms = false -- all have their places
end
-- In order: those without a digest with few writes, up to one that has one.
while place <= #jobs do
  if size > PLAIN and jobs[place + PLAIN] ~= "" then
    local answer, is_added = enqueue_unique(q, read_job(jobs, place, now), rooms, now)
    answers[#answers + 1], place = answer, place + size
    if is_added then added = added + 1 end
  else
    local plan
    plan, place = plan_jobs(q, jobs, place, size, rooms, now, answers)
    add_planned(q, plan, now)
  end
end
if added > 0 then count(q.stats, now, "enqueued", added) end
return answers
