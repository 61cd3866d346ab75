-- requeue_changed: queue a dead letter again, with all its attempts and other arguments.
-- dead -> queued
-- uses: prelude requeue
-- keys: dead jobs failures crashes bands turn lanes waiting_since work_signal clock scratch stats ring lane
--       digests unique workers running_of scheduled retrying ended_members runners
-- ARGV[1] latest      a job that died later is left alone, ms
-- ARGV[2] id          the job
-- ARGV[3] body        the new part of its record after the header
--
-- returns "queued", or "elsewhere": it is not dead (any more), has died again, or another job holds its digest
-- sent twice: "elsewhere", and nothing changes

local q, latest, id, body = named(), tonumber(ARGV[1]), ARGV[2], ARGV[3]
local now = now_ms(q.clock)

if not died_until(q, id, latest) then return "elsewhere" end
redis.call("DEL", q.scratch) -- lets a full server be drained
if not requeue_job(q, id, body, now) then return "elsewhere" end
count(q.stats, now, "requeued", 1)
return "queued"
