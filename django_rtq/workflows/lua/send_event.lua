-- send_event: give a job an event, and let it look again if it waits for one.
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
local key, place = q.steps .. id, "token " .. event .. "\n" .. token
local known, last, sent, size = unpack(redis.call("HMGET", key, place, "last " .. event, "sent", "bytes"))
local number = known or string.format("%d", (last or 0) + 1)
local field = "event " .. number .. " " .. event
if not known then
  if wait and "event " .. wait.event == field and wait.due <= now then return "late" end
  if tonumber(sent or 0) >= most or (sent or 0) - (wait and wait.reads or 0) >= unread then return "full" end
  if (size or 0) + #value > bytes then return "large" end
end
if redis.call("HEXISTS", key, field) == 0 then
  local text = string.format("%.0f ", now) .. value
  redis.call("HSETNX", q.step_jobs, id, "") -- first: by that its events are found when it ends
  redis.call("HSET", key, field, text, "last " .. event, number, place, number, "sent", string.format("%d", (sent or 0) + 1),
    "bytes", string.format("%d", (size or 0) + #text))
end

local due = tonumber(redis.call("ZSCORE", q.scheduled, id))
local waits = wait and wait.event ~= "" -- for one of any name: its code says for which, and may be newer than what is noted
-- Not what a paused task holds, nor a job that has failed meanwhile: these go on by themselves.
if waits and due and due < tonumber(lowest_held()) and not redis.call("ZSCORE", q.retrying, id) then
  local _, client = read_header(record)
  push_back(q, id, record, now)
  unschedule(q, client, { id })
end
return "sent"
