-- reclaim_child: take back the jobs of one process: its supervisor saw it die, before its lease expires; or its lease has
-- expired, and a person asks for it.
-- uses: prelude workers reclaim
-- ARGV[1] worker      its name
-- ARGV[2] limit       jobs to take back in this call, at most 500
-- ARGV[3] version     of the project that it ran; "": unknown
-- ARGV[...] guilty    the ids that were running when it died: a crash is counted for them; the others are released. "lapsed": all
--                     may have been running, as in reclaim
--
-- returns {how many are left to take back; -1: its lease has not expired; id, "queued", "dead" or "cancelled", ...}
-- sent twice: goes on where the first call stopped

local q, worker, limit, version, guilty = named(), ARGV[1], tonumber(ARGV[2]), ARGV[3], {}
for i = 4, #ARGV do guilty[ARGV[i]] = true end
q.version = version ~= "" and version
local now, answer = now_ms(q.clock), { 0 }
local deadline = guilty.lapsed and tonumber(redis.call("ZSCORE", q.workers, worker) or 0)
if deadline and deadline > now then return { -1 } end

answer[1] = reclaim_jobs(q, worker, function(id) return guilty.lapsed or guilty[id] end, limit, now, answer)
if answer[1] == 0 then delete_worker(q, worker) end
return answer
