-- suspend: let running jobs go on later, in another run: at a time, or when they get an event.
-- running -> scheduled; queued, if it may go on at once; cancelled, if it was asked to stop
-- uses: prelude lanes schedule settle running_counts steps
-- keys: running jobs scheduled scheduled_by_client due_signal step_jobs steps bands turn lanes waiting_since work_signal
--       ring lane clock scratch failures crashes errors retrying results recent_results finished no_outcome stats waiters
--       finished_signal cancel_requests progress digests unique result_times result_expiry
--       limits running_counts blocked rate_times next_starts job_times ended_members runners
-- ARGV[...] jobs      of each: id, ms to wait at the most, what it waits for, as steps.lua has it; at most 500
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
  local id, ms, wait = jobs[i], jobs[i + 1], jobs[i + 2]
  local record = redis.call("HGET", q.jobs, id)
  if record then
    local due = begin_wait(q, id, wait, now, now + ms)
    keep_digest(q, id, math.max(0, due - now))
    -- It is ready then, and does not expire any more.
    local fresh = string.gsub(record, "^(%S+ %S+) %d+ %d+ ", string.format("%%1 %.0f 0 ", due), 1)
    redis.call("HSET", q.jobs, id, fresh)
    local _, client = read_header(record)
    if due <= now then push_back(q, id, record, now) else schedule(q, client, due, id) end
  end
  leave(q, q.running, { id })
end
count_ended(q, entries)
return stale
