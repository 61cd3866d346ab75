-- bury: move failed jobs to the dead letters, where they stay until a person requeues or discards them.
-- running -> dead; cancelled, if it was asked to stop
-- uses: prelude unique outcomes settle failures running_counts members
-- keys: running jobs failures errors dead clock scratch stats waiters finished_signal scheduled retrying
--       due_signal digests unique crashes waiting_since results recent_results finished no_outcome
--       cancel_requests progress result_times result_expiry scheduled_by_client
--       limits running_counts blocked rate_times next_starts job_times bands turn work_signal ring lane ended_members
--       step_jobs steps runners
-- ARGV[...] jobs      of each: id, failures to count (1 or 0), the failure as one line of JSON; at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, jobs = named(), ARGV
local now = now_ms(q.clock)
local mine, stale, entries = split_held(q.running, jobs, 3)
if #mine == 0 then return stale end

redis.call("DEL", q.scratch) -- lets a full server be drained
finish_cancelled(q, ids_at(jobs, mine), now)
for _, i in ipairs(mine) do
  local id, failures, line = jobs[i], jobs[i + 1], jobs[i + 2]
  -- Without a record it is finished: it had a cancel request; or a torn log had given it to two, and one finished first.
  if redis.call("HEXISTS", q.jobs, id) == 1 then
    note_members(q, { id }, "dead")
    redis.call("ZADD", q.dead, now, id)
    record_failure(q, id, failures, line, now)
    notify_waiters(q, { id })
    release_unique(q, { id })
    count(q.stats, now, "dead", 1)
  end
  leave(q, q.running, { id })
end
count_ended(q, entries)
return stale
