-- move: move a job that does not run to another queue. There are two queues: where it is, and where it goes.
-- queued, scheduled, retrying -> the same in the other queue; dead -> queued there, with all its attempts
-- uses: prelude workers known_ids movable moving
-- keys: jobs scheduled retrying dead cancelled_in_lane failures crashes errors progress waiting_since bands ring lane lanes
--       turn work_signal due_signal scheduled_by_client digests unique workers running_of finished finished_before
--       results waiters finished_signal cancel_requests clock scratch stats log
-- ARGV[1] id          the job
--
-- returns "moved", or why not: "missing", "finished", "running"; "there": it is in the other queue; "duplicate <id>" of the
--         owner of its digest there; "after <id>": it waits for the end of that job; "before <id>": that job waits for
--         its end; "long": it was in the other queue before, and its id is still in a lane that is too long to search
-- sent twice: "there", and nothing changes

local q, target, id = named(), named(2), ARGV[1]
local now, record = now_ms(q.clock), redis.call("HGET", q.jobs, id)

if not record then
  if redis.call("HEXISTS", target.jobs, id) == 1 or has_ended(target, id) then return "there" end
  return has_ended(q, id) and "finished" or "missing"
end
if find_runner(q, id) then return "running" end
local job = load_job(q, id, record, now)
local reason = why_not(q, target, job)
if reason then return reason end
redis.call("DEL", q.scratch) -- lets a full server be drained
local is_there = redis.call("HEXISTS", target.jobs, id) == 1 -- the log was torn
if not is_there then store_job(q, target, job, now) end
if redis.call("EXISTS", q.log .. id) == 1 then redis.call("RENAME", q.log .. id, target.log .. id) end
remove_job(q, job, now)
count(q.stats, now, "moved", 1)
return "moved"
