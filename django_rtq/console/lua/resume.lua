-- resume: allow claims from a paused queue again, and wake a worker; or let the jobs of a paused task run again, and give those
-- that were held back to their lanes, some in a call. Promote goes on if nobody calls this again.
-- uses: held_jobs
-- ARGV[1] task        its name; "": the queue
-- ARGV[2] limit       jobs in this call, at most 100
--
-- returns {"resumed", or "already": it was not paused, how many jobs went back, 1 if there may be more, else 0}
-- sent twice: goes on where the first call stopped

local q, task, limit = named(), ARGV[1], tonumber(ARGV[2])
local field = task == "" and "queue" or "task:" .. task
local entry = redis.call("HGET", q.paused, field)
if not entry then return { "already", 0, 0 } end

if task == "" then
  redis.call("ZADD", q.work_signal, 0, "work")
  redis.call("HDEL", q.paused, field)
  return { "resumed", 0, 0 }
end
local is_paused = string.find(entry, " ", 1, true)
if is_paused then redis.call("HSET", q.paused, field, string.match(entry, "^%d+")) end
redis.call("ZADD", q.due_signal, "0", "due") -- for the scheduler, before the pause is forgotten
local returned = return_held(q, field, limit)
return { is_paused and "resumed" or "already", returned, returned == limit and 1 or 0 }
