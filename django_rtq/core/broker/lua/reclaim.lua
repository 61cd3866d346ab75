-- reclaim: take back the jobs of workers whose lease has expired. For each job this counts as a crash.
-- uses: workers reclaim
-- ARGV[1] lease_ms    of the caller: a silence of more than half of it is an outage
-- ARGV[2] limit       jobs to take back in this call, at most 25
-- ARGV[...] notes     name of a worker, the version of the project that it ran; of those of which that is known
--
-- returns {ms until there may be more to do, or -1; id, "queued", "dead" or "cancelled", ...}
-- sent twice: goes on where the first call stopped

local q, lease_ms, limit = named(), tonumber(ARGV[1]), tonumber(ARGV[2])
local versions = {}
for i = 3, #ARGV, 2 do versions[ARGV[i]] = ARGV[i + 1] end

local now = record_contact(q, lease_ms)
q.now = now -- the time that limits know, too: read again, it would have gone on
local hold = tonumber(redis.call("HGET", q.clock, "hold") or 0)
if now < hold then return { hold - now } end

local answer = { -1 }
for _, worker in ipairs(redis.call("ZRANGEBYSCORE", q.workers, "-inf", now, "LIMIT", 0, 10)) do
  q.version = versions[worker]
  local todo = limit - (#answer - 1) / 2
  local left = reclaim_jobs(q, worker, function() return true end, todo, now, answer)
  if left == 0 then delete_worker(q, worker) end
end
local earliest = redis.call("ZRANGE", q.workers, 0, 0, "WITHSCORES")[2]
if earliest then answer[1] = math.max(0, earliest - now) end
return answer
