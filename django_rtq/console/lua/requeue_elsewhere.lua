-- requeue_elsewhere: queue dead letters in another queue, with all their attempts. There are two queues: where they are, and
-- where they go.
-- dead -> queued there
-- uses: prelude lanes unique members requeue outcomes
-- keys: jobs scheduled retrying dead failures crashes errors progress waiting_since bands ring lane lanes turn work_signal
--       due_signal scheduled_by_client digests unique workers running_of finished finished_before waiters finished_signal
--       cancel_requests clock scratch stats log ended_members step_jobs steps runners
-- ARGV[1] latest      jobs that died later are left alone, ms
-- ARGV[...] ids       at most 100
--
-- returns the ids that were queued; the others are not dead (any more), or another job holds their digest there
-- sent twice: none is dead the second time, and nothing changes

local q, target, latest, ids = named(), named(2), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local now, queued = now_ms(q.clock), {}

-- What goes there with a record. Failures and crashes do not: all attempts are left.
local beside, beside_there = { q.errors, q.progress, q.step_jobs }, { target.errors, target.progress, target.step_jobs }

-- Its place before its record, as when it was enqueued. It may have been in that queue before.
local function store_job(id, record, ms, digest)
  local fresh = fresh_record(record, now)
  redis.call("SADD", queue_of(target.jobs))
  redis.call("SREM", target.finished, id)
  redis.call("SREM", target.finished_before, id)
  push_back(target, id, fresh, now)
  redis.call("HSET", target.jobs, id, fresh)
  for i, hash in ipairs(beside) do
    local value = redis.call("HGET", hash, id)
    if value then redis.call("HSET", beside_there[i], id, value) end
  end
  if digest then
    acquire_unique(target, id, digest, ms)
    redis.call("HSET", target.digests, id, redis.call("HGET", q.digests, id))
  end
end

-- Its id stays known here for some minutes, in case it is enqueued again.
local function remove_job(id)
  note_members(target, { id }, "open")
  drop_notes(q, { id })
  redis.call("SADD", q.finished, id)
  delete_jobs(q, { id })
  redis.call("ZREM", q.dead, id)
end

-- Returns false for an id without a record, and for a unique job while another job holds its digest there.
local function requeue_there(id)
  local record, _, ms, digest = redis.call("HGET", q.jobs, id), read_digest(q, id)
  local other = digest and unique_owner(target, digest)
  if not record or (other and other ~= id) then return false end
  local is_there = redis.call("HEXISTS", target.jobs, id) == 1 -- the log was torn
  if not is_there then store_job(id, record, ms, digest) end
  if redis.call("EXISTS", q.log .. id) == 1 then redis.call("RENAME", q.log .. id, target.log .. id) end
  if redis.call("EXISTS", q.steps .. id) == 1 then redis.call("RENAME", q.steps .. id, target.steps .. id) end
  remove_job(id)
  return true
end

redis.call("DEL", q.scratch) -- lets a full server be drained
for _, id in ipairs(ids) do
  if died_until(q, id, latest) and requeue_there(id) then queued[#queued + 1] = id end
end
if #queued > 0 then count(q.stats, now, "requeued", #queued) end
return queued
