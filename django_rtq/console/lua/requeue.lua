-- requeue: queue dead letters again, with all their attempts. There are two queues: where they are, and where they go, which may
-- be the same.
-- uses: prelude lanes unique members outcomes
-- ARGV[1] latest      jobs that died later are left alone, ms
-- ARGV[2] body        of one job: the new part of its record after the header; "": all are as they were
-- ARGV[...] ids       at most 100
--
-- returns the ids that were queued; the others are not dead (any more), or another job holds their digest there
-- sent twice: none is dead the second time, and nothing changes

local q, target, latest, body, ids = named(), named(2), tonumber(ARGV[1]), ARGV[2], { select(3, unpack(ARGV)) }
local now, queued, is_elsewhere = now_ms(q.clock), {}, KEYS[1] ~= KEYS[2]

-- What goes elsewhere with a record. Failures and crashes do not: all attempts are left.
local beside, beside_there = { q.errors, q.progress, q.step_jobs }, { target.errors, target.progress, target.step_jobs }

-- Its record: it is ready now, and does not expire any more.
local function fresh_record(record)
  local fresh = string.gsub(record, "^(%-?%d+)%+?( %d+) %d+ %d+ ", string.format("%%1%%2 %.0f 0 ", now), 1)
  return body == "" and fresh or string.match(fresh, "^[^\n]*\n") .. body
end

-- In the same queue all else before its place: it has a record there, and would run with what is old.
local function queue_here(id, record, ms, digest)
  if digest then acquire_unique(q, id, digest, ms) end
  redis.call("HSET", q.jobs, id, record)
  redis.call("HDEL", q.failures, id)
  redis.call("HDEL", q.crashes, id)
  push_back(q, id, record, now)
  note_members(q, { id }, "open")
end

-- In another its place before its record, as when it was enqueued: claims skip an id without a record, and a record without
-- a place would be lost. It may have been in that queue before.
local function queue_there(id, record, ms, digest)
  redis.call("SADD", queue_of(target.jobs))
  redis.call("SREM", target.finished, id)
  redis.call("SREM", target.finished_before, id)
  push_back(target, id, record, now)
  redis.call("HSET", target.jobs, id, record)
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
local function leave_queue(id)
  if redis.call("EXISTS", q.log .. id) == 1 then redis.call("RENAME", q.log .. id, target.log .. id) end
  if redis.call("EXISTS", q.steps .. id) == 1 then redis.call("RENAME", q.steps .. id, target.steps .. id) end
  note_members(target, { id }, "open")
  redis.call("HDEL", q.ended_members, id)
  redis.call("SADD", q.finished, id)
  delete_jobs(q, { id })
end

-- Returns false for one that died later, that has no record, or while another job holds its digest there.
local function requeue_job(id)
  local died, record, _, ms, digest = redis.call("ZSCORE", q.dead, id), redis.call("HGET", q.jobs, id), read_digest(q, id)
  local other = digest and unique_owner(target, digest)
  if not died or tonumber(died) > latest or not record or (other and other ~= id) then return false end
  if not is_elsewhere then
    queue_here(id, fresh_record(record), ms, digest)
  else
    if redis.call("HEXISTS", target.jobs, id) == 0 then queue_there(id, fresh_record(record), ms, digest) end -- torn log
    leave_queue(id)
  end
  redis.call("ZREM", q.dead, id) -- last: a torn log may cost a second run, not a job
  return true
end

for _, id in ipairs(ids) do
  if requeue_job(id) then queued[#queued + 1] = id end
end
if #queued > 0 then count(q.stats, now, "requeued", #queued) end
return queued
