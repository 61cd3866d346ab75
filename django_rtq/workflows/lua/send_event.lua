-- send_event: give a job an event, and let it look again if it waits for one.
-- scheduled -> queued, if it waits for an event
-- uses: prelude lanes schedule known_ids task_pauses steps
-- ARGV[1] id          the job
-- ARGV[2] event       its name
-- ARGV[3] token       of the call: by that it is recognised when it is sent twice
-- ARGV[4] value       JSON
-- ARGV[5] unread      events that may lie there, and nobody has read
-- ARGV[6] most        events that a job gets at the most
-- ARGV[7] bytes       their values may have, together
--
-- returns "sent", or why not: "missing"; "finished"; "late": the job has gone on without it, by its time-out; "full": as many
--         as may lie there do; "large": the values have too many bytes
-- sent twice: "sent", and nothing changes

local q, id, event, token, value = named(), ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local unread, most, bytes = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local now, record = now_ms(q.clock), redis.call("HGET", q.jobs, id)

if not record then return has_ended(q, id) and "finished" or "missing" end
local wait = read_wait(redis.call("HGET", q.step_jobs, id))
local refusal, number = place_event(q, id, wait, event, token, now, { unread = unread, most = most, bytes = bytes - #value })
if refusal then return refusal end
redis.call("DEL", q.scratch) -- lets a full server be drained
store_event(q, id, event, number, token, string.format("%.0f ", now) .. value)

local due = tonumber(redis.call("ZSCORE", q.scheduled, id))
local waits = wait and wait.event ~= "" -- for one of any name: its code says for which, and may be newer than what is noted
-- Not what a paused task holds, nor a job that has failed meanwhile: these go on by themselves.
if waits and due and due < tonumber(lowest_held()) and not redis.call("ZSCORE", q.retrying, id) then
  local _, client = read_header(record)
  push_back(q, id, record, now)
  unschedule(q, client, { id })
end
return "sent"
