-- _conflicts: what becomes of a job when another one holds its digest.

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
