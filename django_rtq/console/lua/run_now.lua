-- run_now: queue a scheduled job before it is due.
-- uses: prelude lanes schedule unique known_ids task_pauses steps
-- ARGV[1] id          the job
--
-- returns "queued", or why not: "missing", "finished", "elsewhere": it is not scheduled (any more), "paused": its task is,
--         or "after <id>": it is the successor of that job, and waits for its end
-- sent twice: "elsewhere", "finished" or "paused", and nothing changes

local q, id = named(), ARGV[1]
local now, record = now_ms(q.clock), redis.call("HGET", q.jobs, id)

if not record then return has_ended(q, id) and "finished" or "missing" end
local due = redis.call("ZSCORE", q.scheduled, id)
if not due then return "elsewhere" end
if tonumber(due) >= tonumber(lowest_held()) and pause_of(q, record) ~= "" then return "paused" end
local _, _, digest = read_digest(q, id)
local first = digest and redis.call("GET", q.unique .. digest)
if first and first ~= id and is_successor(q, id) and select(4, read_digest(q, first)) == id then return "after " .. first end
local _, client = read_header(record)
push_back(q, id, record, now)
end_wait(q, id, now)
redis.call("ZREM", q.retrying, id)
unschedule(q, client, { id })
return "queued"
