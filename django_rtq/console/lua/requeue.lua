-- requeue: queue dead letters again, with all their attempts.
-- dead -> queued
-- uses: prelude requeue
-- keys: dead jobs failures crashes bands turn lanes waiting_since work_signal clock scratch stats ring lane
--       digests unique workers running_of scheduled retrying ended_members runners
-- ARGV[1] latest      jobs that died later are left alone, ms
-- ARGV[...] ids       at most 100
--
-- returns the ids that were queued; the others are not dead (any more), or another job holds their digest
-- sent twice: none is dead the second time, and nothing changes

local q, latest, ids = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local now, queued = now_ms(q.clock), {}

redis.call("DEL", q.scratch) -- lets a full server be drained
for _, id in ipairs(ids) do
  if died_until(q, id, latest) and requeue_job(q, id, nil, now) then queued[#queued + 1] = id end
end
if #queued > 0 then count(q.stats, now, "requeued", #queued) end
return queued
