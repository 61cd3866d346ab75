-- unique_enqueue: store a new unique job, or resolve its conflict with the owner of its digest.
-- created when first called
-- uses: prelude lanes schedule runners enqueue unique steps known_ids waiting

-- Read the job whose arguments start at this position.
local function read_job(jobs, place, now)
  local id, band, max_crashes, client, due, expires, front, body, digest, span, ms, conflict = unpack(jobs, place, place + 11)
  return {
    id = id, band = band, max_crashes = max_crashes, client = client, expires = expires, front = front, body = body,
    digest = digest, span = span, ms = ms, conflict = conflict, ready = parse_time(due, now) or now,
  }
end

local function note_of(job)
  return job.span .. " " .. job.ms .. " " .. job.digest
end

local function build_record(job)
  return new_record(job.band, job.max_crashes, string.format("%.0f", job.ready), job.expires, job.client, job.body)
end

-- Whether the owner of a digest is under way: it runs, or will go on with what it remembers.
local function is_under_way(q, id)
  return find_runner(q, id) or has_waited(q, id)
end

-- on_conflict="replace": an owner that has not started gets arguments and time of the new job.
local function replace_job(q, id, job, now)
  if is_under_way(q, id) then return end
  acquire_unique(q, id, job.digest, job.ms + math.max(0, job.ready - now))
  local band, client = read_header(redis.call("HGET", q.jobs, id))
  local is_scheduled = redis.call("ZSCORE", q.scheduled, id)
  if not is_scheduled then job.band, job.client = band, client end -- it is in a lane already, and keeps its place
  redis.call("HSET", q.jobs, id, build_record(job))
  if is_scheduled and job.ready > now then
    if client ~= job.client then remove_from_index(q, client, { id }) end
    schedule(q, job.client, job.ready, id)
    redis.call("ZADD", q.retrying, "XX", job.ready, id)
  elseif is_scheduled then
    push_back(q, id, build_record(job), now)
    redis.call("ZREM", q.retrying, id)
    unschedule(q, client, { id })
  end
end

-- on_conflict="rerun": the new job runs when the owner has ended, once, however often it is sent: as the successor, which
-- waits in `scheduled`, no longer than the limit. Returns whether a job was added.
local function enqueue_after(q, id, successor, job)
  if successor then
    local _, client = read_header(redis.call("HGET", q.jobs, successor))
    if client ~= job.client then
      remove_from_index(q, client, { successor })
      schedule(q, job.client, tonumber(redis.call("ZSCORE", q.scheduled, successor)), successor)
    end
    redis.call("HSET", q.jobs, successor, build_record(job))
    return false
  end
  if not is_under_way(q, id) then return false end
  local span, ms, digest = read_digest(q, id)
  redis.call("HSET", q.digests, id, (span and span .. " " .. ms .. " " .. digest or note_of(job)) .. " " .. job.id)
  schedule(q, job.client, job.ready + job.ms, job.id)
  redis.call("HSET", q.jobs, job.id, build_record(job))
  redis.call("HSET", q.digests, job.id, note_of(job))
  return true
end

-- Whether a job whose id is not known would be added: no duplicate, or the first that is to run after the owner.
local function is_new(q, conflict, first, successor)
  return not first or conflict == "rerun" and not successor and is_under_way(q, first)
end

-- Add a job, if no other holds its digest, or else do what it says. Returns the answer, and whether it was added.
local function enqueue_unique(q, job, rooms, now)
  local first, successor = unique_owner(q, job.digest)
  if first and successor == job.id then return "after " .. first end
  local recent = is_recent(job.id, now)
  if is_known(q, job.id, recent) then return "exists" end
  local full = rooms and is_new(q, job.conflict, first, successor) and take_place(q, rooms, job.client)
  if full then return full end
  if first and job.conflict == "replace" then replace_job(q, first, job, now) end
  if first and not (job.conflict == "rerun" and enqueue_after(q, first, successor, job)) then return "duplicate " .. first end
  if first then return "after " .. first, true end
  acquire_unique(q, job.id, job.digest, job.ms + math.max(0, job.ready - now))
  if job.ready > now then
    schedule(q, job.client, job.ready, job.id)
  else
    push_new(q, job.id, job.band, job.client, job.front, string.format("%.0f", now), recent)
  end
  -- The record after the place, and `digests` last: what a torn log keeps of these writes holds no digest.
  redis.call("HSET", q.jobs, job.id, build_record(job))
  redis.call("HSET", q.digests, job.id, note_of(job))
  return "ok", true
end
