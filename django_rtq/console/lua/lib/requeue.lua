-- requeue: queue dead letters again.
-- uses: lanes unique members

-- Whether a job is dead, and died no later than `latest`.
local function died_until(q, id, latest)
  local died = redis.call("ZSCORE", q.dead, id)
  return died and tonumber(died) <= latest
end

-- Its record: it is ready now, and does not expire any more.
local function fresh_record(record, now)
  return (string.gsub(record, "^(%-?%d+)%+?( %d+) %d+ %d+ ", string.format("%%1%%2 %.0f 0 ", now), 1))
end

-- Queue a dead letter with all its attempts, and with a new body if there is one. Returns false for an id without a
-- record, and for a unique job while another job holds its digest.
local function requeue_job(q, id, body, now)
  local record, _, ms, digest = redis.call("HGET", q.jobs, id), read_digest(q, id)
  if not record or (digest and unique_owner(q, digest)) then return false end
  if digest then acquire_unique(q, id, digest, ms) end
  local fresh = fresh_record(record, now)
  if body then fresh = string.match(fresh, "^[^\n]*\n") .. body end
  redis.call("HSET", q.jobs, id, fresh)
  redis.call("HDEL", q.failures, id)
  redis.call("HDEL", q.crashes, id)
  push_back(q, id, fresh, now)
  note_members(q, { id }, "open")
  redis.call("ZREM", q.dead, id) -- last: a torn log may cost a second run, not a job
  return true
end
