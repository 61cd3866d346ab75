-- moving: store a job that does not run in another queue, then remove it from its own.
-- uses: prelude lanes schedule unique outcomes

-- A lane has lost an id.
local function update_lane(q, lane, now)
  local first = redis.call("LINDEX", q.lane .. lane, 0)
  if first then redis.call("ZADD", q.lanes, waiting_since(q, first, now), lane) else leave_ring(q, lane) end
end

-- The job was in this queue before, and left its id there.
local function forget_id(q, id, now)
  redis.call("SREM", q.finished, id)
  redis.call("SREM", q.finished_before, id)
  local lane = redis.call("HGET", q.cancelled_in_lane, id)
  if lane then
    redis.call("LREM", q.lane .. lane, 1, id)
    redis.call("HDEL", q.cancelled_in_lane, id)
    update_lane(q, lane, now)
  end
end

-- The record for the other queue: promote marks the band there. A dead letter is ready now, and does not expire any more.
local function moved_record(job, now)
  local times = job.is_dead and string.format(" %.0f 0 ", now) or "%3"
  return (string.gsub(job.record, "^(%-?%d+)%+?( %d+)( %d+ %d+ )", "%1%2" .. times, 1))
end

-- What lies beside a record: first what a dead letter takes with it.
local function hashes_beside(q)
  return { q.errors, q.progress, q.step_jobs, q.failures, q.crashes }
end

-- Its place before its record, as when it was enqueued.
local function store_job(q, target, job, now)
  local id, record, hashes = job.id, moved_record(job, now), hashes_beside(target)
  redis.call("SADD", queue_of(target.jobs))
  forget_id(target, id, now)
  if job.due then schedule(target, job.client, job.due, id) else push_back(target, id, record, job.since) end
  redis.call("HSET", target.jobs, id, record)
  for i, hash in ipairs(hashes_beside(q)) do
    local value = (i < 4 or not job.is_dead) and redis.call("HGET", hash, id)
    if value then redis.call("HSET", hashes[i], id, value) end
  end
  if job.due and job.is_retrying then redis.call("ZADD", target.retrying, job.due, id) end
  local left = job.is_owner and redis.call("PTTL", q.unique .. job.digest) or 0
  if job.is_owner or (job.digest and job.is_dead) then acquire_unique(target, id, job.digest, left > 0 and left or job.ms) end
  if job.note then redis.call("HSET", target.digests, id, job.note) end
end

-- Its id stays known for some minutes, in case it is enqueued again. In a lane it is only looked for at the front.
local function remove_job(q, job, now)
  local id, lane = job.id, job.lane
  local is_first = lane and redis.call("LINDEX", q.lane .. lane, 0) == id
  redis.call("SADD", q.finished, id)
  if lane and not is_first then redis.call("HSET", q.cancelled_in_lane, id, lane) end
  delete_jobs(q, { id })
  if job.is_scheduled then unschedule(q, job.client, { id }) end
  if job.is_dead then redis.call("ZREM", q.dead, id) end
  if is_first then
    redis.call("LPOP", q.lane .. lane)
    update_lane(q, lane, now)
  end
end
