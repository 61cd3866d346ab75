-- reclaim_worker: take back the jobs of one worker whose lease has expired, at the request of a person.
-- running -> queued, or dead; cancelled, if it was asked to stop
-- uses: prelude workers reclaim
-- keys: workers clock jobs bands turn lanes waiting_since failures crashes errors dead work_signal scratch
--       stats ring lane running_of waiters finished_signal scheduled retrying due_signal digests unique
--       finished no_outcome progress results recent_results cancel_requests signed_on tasks result_times
--       result_expiry scheduled_by_client
--       limits running_counts blocked rate_times next_starts job_times done_runs failed_runs failing ended_members
--       step_jobs steps runners
-- ARGV[1] worker      its name
-- ARGV[2] limit       jobs to take back in this call, at most 500
--
-- returns {"alive" if its lease has not expired, else "released" or "unknown"; how many are left to take back; id, "queued",
--         "dead" or "cancelled", ...}
-- sent twice: goes on where the first call stopped

local q, worker, limit = named(), ARGV[1], tonumber(ARGV[2])
local now, deadline = now_ms(q.clock), redis.call("ZSCORE", q.workers, worker)

if not deadline then return { "unknown", 0 } end
if tonumber(deadline) > now then return { "alive", 0 } end
local answer = { "released", 0 }
redis.call("DEL", q.scratch) -- lets a full server be drained
-- It may have been running any of them: each counts a crash, as in reclaim.
answer[2] = reclaim_jobs(q, worker, function() return true end, limit, now, answer)
if answer[2] == 0 then delete_worker(q, worker) end
return answer
