-- movable: read a job that is to be moved to another queue, and whether it may leave and enter.
-- uses: prelude lanes unique task_pauses

local LONGEST_LANE = 50000 -- in which an id is searched for

-- What is known of a job. What a paused task holds has been queued before, and is queued in the other queue.
local function load_job(q, id, record, now)
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
local function why_not(q, target, job)
  local digest, named_in = job.digest, redis.call("HGET", target.cancelled_in_lane, job.id)
  local first = digest and redis.call("GET", q.unique .. digest)
  local waits = first and first ~= job.id and is_successor(q, job.id)
  if waits and select(4, read_digest(q, first)) == job.id then return "after " .. first end
  if job.is_owner and is_successor(q, job.successor) then return "before " .. job.successor end
  local other = (job.is_owner or (digest and job.is_dead)) and unique_owner(target, digest)
  if other and other ~= job.id then return "duplicate " .. other end
  if named_in and redis.call("LLEN", target.lane .. named_in) > LONGEST_LANE then return "long" end
end
