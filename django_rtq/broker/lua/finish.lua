-- finish: settle jobs that need no further run.
-- running -> succeeded, expired or cancelled
-- uses: prelude settle
-- keys: running jobs failures crashes errors waiting_since retrying results recent_results finished
--       no_outcome clock scratch stats waiters finished_signal scheduled due_signal digests unique
--       cancel_requests progress result_times result_expiry scheduled_by_client
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[2] state       "succeeded"; "expired": nobody started them before they expired; "cancelled": they were asked to
--                     stop, and did
-- ARGV[3] run_ms      how long these jobs ran, together; counted if they succeeded
-- ARGV[4] wait_ms     how long they had waited, together; counted if they succeeded
-- ARGV[...] jobs      of each: id, ms to keep, outcome ("": only the id); at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, most, state, run_ms, wait_ms = named(), tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local jobs = { select(5, unpack(ARGV)) }
local now = now_ms(q.clock)

-- A worker that was considered dead may be alive and finish late.
-- By then its jobs were given to others, and it may not settle them.
local stale, finished = finish_runs(q, jobs, most, now, state)
if finished > 0 and state == "succeeded" then
  count(q.stats, now, "run_ms", run_ms)
  count(q.stats, now, "wait_ms", wait_ms)
end
return stale
