-- erase: delete all that is kept of a job, unless it runs.
-- queued, scheduled, retrying, dead -> gone; of one that is over: its outcome, its lines and its steps
-- uses: prelude schedule lanes runners outcomes members
-- ARGV[1] id          the job
--
-- returns "erased", "running", or "missing"
-- sent twice: "missing", and nothing changes

local q, id = named(), ARGV[1]
local now = now_ms(q.clock)
local record = redis.call("HGET", q.jobs, id)

if record and find_runner(q, id) then return "running" end
local band, client = read_header(record or "")
local is_dead, is_scheduled = redis.call("ZSCORE", q.dead, id), redis.call("ZSCORE", q.scheduled, id)
redis.call("DEL", q.scratch) -- lets a full server be drained
local is_queued = record and not is_dead and not is_scheduled
if is_queued then redis.call("HSET", q.cancelled_in_lane, id, band .. ":" .. client) end
if record then note_members(q, { id }, "gone") end
local gone = delete_jobs(q, { id }) + redis.call("HDEL", q.results, id)
expire_logs(q, { id }, 0)
redis.call("UNLINK", q.steps .. id)
if is_dead then redis.call("ZREM", q.dead, id) end
if is_scheduled then unschedule(q, client, { id }) end
if is_queued then trim_cancelled(q, band .. ":" .. client, now) end
return gone > 0 and "erased" or "missing"
