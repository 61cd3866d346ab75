-- postpone: let jobs that were claimed and did not run wait for others of their task, up to a time. No attempt is counted.
-- running -> scheduled; cancelled, if it was asked to stop
-- uses: prelude schedule settle running_counts unique
-- keys: running jobs scheduled scheduled_by_client due_signal clock scratch waiting_since failures crashes errors retrying
--       results recent_results finished no_outcome stats waiters finished_signal cancel_requests progress digests unique
--       result_times result_expiry limits running_counts blocked rate_times next_starts job_times bands turn work_signal
--       ring lane ended_members step_jobs steps runners
-- ARGV[...] jobs      of each: id, when it is due (ms); at most 500
--
-- returns the ids that were stale: no longer this worker's to postpone
-- sent twice: every id is stale the second time, and nothing changes

local q, jobs = named(), ARGV
local now = now_ms(q.clock)
local mine, stale, entries = split_held(q.running, jobs, 2)
if #mine == 0 then return stale end

redis.call("DEL", q.scratch) -- lets a full server be drained
finish_cancelled(q, ids_at(jobs, mine), now)
for _, i in ipairs(mine) do
  local id, due = jobs[i], tonumber(jobs[i + 1])
  local record = redis.call("HGET", q.jobs, id)
  if record then
    local _, client = read_header(record)
    local _, ms, digest = read_digest(q, id)
    if digest and redis.call("GET", q.unique .. digest) == id then acquire_unique(q, id, digest, ms + due - now) end
    redis.call("HSET", q.jobs, id, (string.gsub(record, "^(%S+ %S+) %d+ ", string.format("%%1 %.0f ", due), 1))) -- ready then
    schedule(q, client, due, id)
  end
  leave(q, q.running, { id })
end
count_ended(q, entries, true)
return stale
