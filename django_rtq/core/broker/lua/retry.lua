-- retry: schedule the next attempt of failed jobs.
-- running -> retrying; cancelled, if it was asked to stop
-- uses: prelude schedule settle failures running_counts
-- keys: running jobs failures errors scheduled retrying due_signal clock scratch stats crashes waiting_since
--       results recent_results finished no_outcome waiters finished_signal cancel_requests progress digests
--       unique result_times result_expiry scheduled_by_client
--       limits running_counts blocked rate_times next_starts job_times bands turn work_signal ring lane ended_members
--       step_jobs steps runners
-- ARGV[...] jobs      of each: id, ms to wait, failures to count (1, or 0 for a job that this worker could not run),
--                     the failure as one line of JSON, client (a newline: the caller does not know it); at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, jobs = named(), ARGV
local now = now_ms(q.clock)
local mine, stale, entries = split_held(q.running, jobs, 5)
if #mine == 0 then return stale end

redis.call("DEL", q.scratch) -- lets a full server be drained
finish_cancelled(q, ids_at(jobs, mine), now)
for _, i in ipairs(mine) do
  local id, due, failures, line, client = jobs[i], now + jobs[i + 1], jobs[i + 2], jobs[i + 3], jobs[i + 4]
  -- Without a record it is finished: it had a cancel request; or a torn log had given it to two, and one finished first.
  if redis.call("HEXISTS", q.jobs, id) == 1 then
    if client == "\n" then client = select(2, read_header(redis.call("HGET", q.jobs, id))) end
    schedule(q, client, due, id)
    redis.call("ZADD", q.retrying, due, id)
    -- Of the failures of a job whose task no worker knows, the first is kept: it shows since when.
    if failures ~= "0" or not is_same_error(q.errors, id, line) then record_failure(q, id, failures, line, now) end
  end
  leave(q, q.running, { id })
end
count_ended(q, entries)
return stale
