-- enqueue_many: add many jobs, each once however often it is sent.
-- — -> queued, or scheduled when it has a time
-- uses: prelude bulk_enqueue known_ids waiting
-- keys: jobs finished finished_before cancelled_in_lane scheduled bands turn lanes waiting_since work_signal due_signal clock
--       ring lane stats scheduled_by_client waiting_limits dead running_counts blocked
-- ARGV[1] together    "1": add all jobs or none, else ""
-- ARGV[...] jobs      of each, as in enqueue: id, band, max_crashes, client, due ("+ms" from now, "ms" since 1970,
--                     "" now), expires ("+ms" after it is due), front, body; at most 500
--
-- returns for each job "ok"; "exists" if its id is known: live, or finished lately; "full queue" or "full client" with how
--         many wait and may wait; "full" if it was not added because another did not fit
-- sent twice: every id exists the second time, and nothing changes

local q, together, jobs = named(), ARGV[1] == "1", ARGV
local now = now_ms(q.clock)

local plan = plan_jobs(q, jobs, find_known(q, ids_of(jobs)), now)
if together and plan.is_full then return none_added(plan.answers) end
add_planned(q, plan, now)
return plan.answers
