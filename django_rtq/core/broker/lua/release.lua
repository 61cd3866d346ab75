-- release: return jobs that did not run, to be claimed next; no attempt is counted.
-- running -> queued; cancelled, if it was asked to stop
-- uses: prelude lanes settle running_counts
-- keys: running jobs bands turn lanes waiting_since work_signal clock scratch ring lane failures crashes
--       errors retrying results recent_results finished no_outcome stats waiters finished_signal
--       cancel_requests progress digests due_signal scheduled unique result_times result_expiry
--       scheduled_by_client
--       limits running_counts blocked rate_times next_starts job_times ended_members step_jobs steps runners
-- ARGV[...] ids       in the order in which they were claimed; at most 500
--
-- returns the ids that were stale: no longer this worker's to release
-- sent twice: every id is stale the second time, and nothing changes

local q, ids = named(), ARGV
local now = now_ms(q.clock)
local mine, stale, entries = split_held(q.running, ids, 1)
if #mine == 0 then return stale end

redis.call("DEL", q.scratch) -- lets a full server be drained
finish_cancelled(q, ids_at(ids, mine), now)
local is_timed = are_timed(q, entries) -- then the time that was charged is given back
for place = #mine, 1, -1 do -- the first claimed is pushed last, to the front
  local id = ids[mine[place]]
  local record = redis.call("HGET", q.jobs, id)
  if record then push_front(q, id, record, now, not is_timed) end
  leave(q, q.running, { id })
end
count_ended(q, entries, true)
return stale
