-- finish: settle jobs that need no further run.
-- running -> succeeded, expired or cancelled
-- uses: prelude settle members
-- keys: running jobs failures crashes errors waiting_since retrying results recent_results finished
--       no_outcome clock scratch stats waiters finished_signal scheduled due_signal digests unique
--       cancel_requests progress result_times result_expiry scheduled_by_client
--       limits running_counts blocked rate_times next_starts job_times bands turn work_signal ring lane ended_members
--       step_jobs steps runners
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[2] state       "succeeded"; "expired": nobody started them before they expired; "cancelled": they were asked to
--                     stop, and did
-- ARGV[...] jobs      of each: id, ms to keep, outcome ("": only the id); at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, most, state, jobs = named(), tonumber(ARGV[1]), ARGV[2], ARGV
local now = now_ms(q.clock)

redis.call("DEL", q.scratch) -- lets a full server be drained
local mine, stale, entries = split_held(q.running, jobs, 3, 3)
if state ~= "succeeded" then note_members(q, ids_at(jobs, mine), "gone") end -- else none is a member: see finish_members
return finish_held(q, jobs, mine, stale, entries, most, now, state)
