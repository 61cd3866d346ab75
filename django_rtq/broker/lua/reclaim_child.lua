-- reclaim_child: take back the jobs of a worker whose death was seen by its supervisor, without waiting for its lease.
-- running -> queued, or dead; cancelled, if it was asked to stop
-- uses: prelude workers reclaim
-- keys: workers sweep jobs bands turn lanes since failures crashes errors dead wake scratch stats ring lane
--       running_of waiting over scheduled retrying due digests unique results finished stopping progress
--       holders tasks kept later
-- ARGV[1] worker      its name
-- ARGV[2] limit       jobs to take back in this call, at most 500
-- ARGV[...] guilty    the ids that were running when it died: they count a crash, the others are given back
--
-- returns {how many are left to take back, id, "queued", "dead" or "cancelled", ...}
-- sent twice: goes on where the first call stopped

local q, worker, limit, guilty = named(), ARGV[1], tonumber(ARGV[2]), {}
for i = 3, #ARGV do guilty[ARGV[i]] = true end
local now, answer = now_ms(q.sweep), { 0 }

redis.call("DEL", q.scratch) -- lets a full server be drained
answer[1] = reclaim_jobs(q, worker, function(id) return guilty[id] end, limit, now, answer)
if answer[1] == 0 then delete_worker(q, worker) end
return answer
