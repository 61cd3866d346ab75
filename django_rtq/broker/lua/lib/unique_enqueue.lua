-- unique_enqueue: a new job that may hold a digest, and what becomes of a job when another one holds its digest.
-- uses: prelude lanes schedule workers enqueue unique

local PARTS = { "id", "band", "max_crashes", "client", "due", "expires", "front", "body", "digest", "span", "ms", "conflict" }

-- The job whose arguments begin at that place.
local function job_at(jobs, place, now)
  local job = {}
  for i, name in ipairs(PARTS) do job[name] = jobs[place + i - 1] end
  job.ready = moment(job.due, now) or now
  job.note = job.span .. " " .. job.ms .. " " .. job.digest
  return job
end

local function record_of(job)
  return new_record(job.band, job.max_crashes, job.ready, job.expires, job.client, job.body)
end

-- The record comes after the place, and the note last: what a torn log keeps of this holds nothing.
local function take_in(q, job, now)
  if job.digest ~= "" then hold(q, job.id, job.digest, job.ms + math.max(0, job.ready - now)) end
  if job.ready > now then
    schedule(q, job.client, job.ready, job.id)
  else
    line_up(q, job.id, job.band, job.client, job.front, now)
  end
  redis.call("HSET", q.jobs, job.id, record_of(job))
  if job.digest ~= "" then redis.call("HSET", q.digests, job.id, job.note) end
end

-- The one that holds it and has not started takes arguments and time of the other.
local function replace(q, id, job, now)
  if runner_of(q, id) then return end
  hold(q, id, job.digest, job.ms + math.max(0, job.ready - now))
  local band, client = header(redis.call("HGET", q.jobs, id))
  if not redis.call("ZSCORE", q.scheduled, id) then -- its time had come: it keeps its place in the line
    job.band, job.client = band, client
    redis.call("HSET", q.jobs, id, record_of(job))
  elseif job.ready > now then
    if client ~= job.client then unindex(q, client, { id }) end
    schedule(q, job.client, job.ready, id)
    redis.call("ZADD", q.retrying, "XX", job.ready, id)
    redis.call("HSET", q.jobs, id, record_of(job))
  else
    redis.call("HSET", q.jobs, id, record_of(job))
    queue_up(q, id, record_of(job), now)
    redis.call("ZREM", q.retrying, id)
    unschedule(q, client, { id })
  end
end

-- The other is to run when the one that holds it is over, however often it is asked for: as its heir, which waits in
-- `scheduled`, and no longer than the limit. Answers whether it is taken in.
local function come_after(q, id, heir, job)
  if heir then
    local _, client = header(redis.call("HGET", q.jobs, heir))
    if client ~= job.client then
      unindex(q, client, { heir })
      schedule(q, job.client, tonumber(redis.call("ZSCORE", q.scheduled, heir)), heir)
    end
    redis.call("HSET", q.jobs, heir, record_of(job))
    return false
  end
  if not runner_of(q, id) then return false end
  local span, ms, digest = note_of(q, id)
  redis.call("HSET", q.digests, id, (span and span .. " " .. ms .. " " .. digest or job.note) .. " " .. job.id)
  schedule(q, job.client, job.ready + job.ms, job.id)
  redis.call("HSET", q.jobs, job.id, record_of(job))
  redis.call("HSET", q.digests, job.id, job.note)
  return true
end
