-- move: move a job that does not run to another queue. There are two queues: where it is, and where it goes.
-- queued, scheduled, retrying -> the same in the other queue; dead -> queued there, with all its attempts
-- uses: prelude lanes unique task_pauses runners known_ids moving members
-- keys: jobs scheduled retrying dead cancelled_in_lane failures crashes errors progress waiting_since bands ring lane lanes
--       turn work_signal due_signal scheduled_by_client digests unique workers running_of finished finished_before
--       results waiters finished_signal cancel_requests clock scratch stats log ended_members step_jobs steps runners
--       signed_on
-- ARGV[1] id          the job
--
-- returns "moved", or why not: "missing", "finished", "running"; "there": it is in the other queue; "duplicate <id>" of the
--         owner of its digest there; "after <id>": it waits for the end of that job; "before <id>": that job waits for
--         its end; "long": it was in the other queue before, and its id is still in a lane that is too long to search
-- sent twice: "there", and nothing changes

local q, target, id = named(), named(2), ARGV[1]
local now, record = now_ms(q.clock), redis.call("HGET", q.jobs, id)
local LONGEST_LANE = 50000 -- in which an id is searched for

-- What is known of a job. What a paused task holds has been queued before, and is queued in the other queue.
local function load_job()
  local band, client = read_header(record)
  local score, died = tonumber(redis.call("ZSCORE", q.scheduled, id) or nil), redis.call("ZSCORE", q.dead, id)
  local is_held = score and score >= tonumber(lowest_held())
  local span, ms, digest, successor = read_digest(q, id)
  return {
    id = id, record = record, client = client, is_dead = died, is_scheduled = score,
    due = not is_held and score, is_retrying = redis.call("ZSCORE", q.retrying, id),
    lane = not score and not died and band .. ":" .. client,
    since = died and now or is_held and held_since(score) or waiting_since(q, id, now),
    digest = digest, ms = ms, successor = successor, note = digest and span .. " " .. ms .. " " .. digest,
    is_owner = digest and unique_owner(q, digest) == id,
  }
end

-- Why a job cannot leave its queue, or not enter the other one; nil if it can.
local function why_not(job)
  local digest, named_in = job.digest, redis.call("HGET", target.cancelled_in_lane, id)
  local first = digest and redis.call("GET", q.unique .. digest)
  local waits = first and first ~= id and is_successor(q, id)
  if waits and select(4, read_digest(q, first)) == id then return "after " .. first end
  if job.is_owner and is_successor(q, job.successor) then return "before " .. job.successor end
  local other = (job.is_owner or (digest and job.is_dead)) and unique_owner(target, digest)
  if other and other ~= id then return "duplicate " .. other end
  if named_in and redis.call("LLEN", target.lane .. named_in) > LONGEST_LANE then return "long" end
end

if not record then
  if redis.call("HEXISTS", target.jobs, id) == 1 or has_ended(target, id) then return "there" end
  return has_ended(q, id) and "finished" or "missing"
end
if find_runner(q, id) then return "running" end
local job = load_job()
local reason = why_not(job)
if reason then return reason end
redis.call("DEL", q.scratch) -- lets a full server be drained
local is_there = redis.call("HEXISTS", target.jobs, id) == 1 -- the log was torn
if not is_there then store_job(q, target, job, now) end
if redis.call("EXISTS", q.log .. id) == 1 then redis.call("RENAME", q.log .. id, target.log .. id) end
if redis.call("EXISTS", q.steps .. id) == 1 then redis.call("RENAME", q.steps .. id, target.steps .. id) end
move_note(q, target, id, job.is_dead)
remove_job(q, job, now)
count(q.stats, now, "moved", 1)
return "moved"
