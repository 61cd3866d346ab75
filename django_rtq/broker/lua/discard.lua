-- discard: delete dead letters.
-- dead -> gone
-- uses: prelude outcomes
-- keys: dead jobs failures crashes errors waiting_since retrying clock scratch stats waiters finished_signal
--       scheduled due_signal digests unique cancel_requests progress scheduled_by_client
-- ARGV[1] latest      jobs that died later are left alone, ms
-- ARGV[...] ids       at most 100
--
-- returns the ids that were deleted; the others are not dead (any more)
-- sent twice: none is dead the second time, and nothing changes

local q, latest, ids = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local gone = {}

for i, died in ipairs(#ids > 0 and redis.call("ZMSCORE", q.dead, unpack(ids)) or {}) do
  if died and tonumber(died) <= latest then gone[#gone + 1] = ids[i] end
end
if #gone == 0 then return gone end
redis.call("DEL", q.scratch) -- lets a full server be drained
delete_jobs(q, gone)
redis.call("ZREM", q.dead, unpack(gone))
count(q.stats, now_ms(q.clock), "discarded", #gone)
return gone
