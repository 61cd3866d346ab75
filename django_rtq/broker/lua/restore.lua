-- restore: put back some of the jobs that an undo has set aside, those first that were deleted last.
-- gone -> dead, queued, scheduled, retrying
-- uses: prelude restore undo
-- keys: undo undos jobs dead failures crashes errors waiting_since digests progress finished finished_before scratch
--       clock unique workers running_of scheduled retrying scheduled_by_client due_signal bands turn lanes
--       work_signal ring lane log ended_members step_jobs steps runners signed_on
-- ARGV[1] token       of the undo
-- ARGV[2] call        a name for this call: by that it is recognised when it is sent twice
-- ARGV[3] keep_ms     for how long the others are kept, so that they can follow
-- ARGV[4] limit       jobs in this call, at most 100; fewer if they are large, one at least
-- ARGV[5] live_ms     for how long the lines are kept that the restored jobs have logged
--
-- returns {how many are left, how many may not come back because another job has their digest, ids, ...}: the ids of those
--         that are there again; nothing if nothing is set aside (any more)
-- sent twice: the same reply, and nothing changes

local q, token, call, keep_ms, limit, live_ms = named(), ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local list, noted = q.undo .. token, token .. " reply"
local size, now = redis.call("LLEN", list), now_ms(q.clock)

local last, left, out, ids = string.match(redis.call("HGET", q.undos, noted) or "", "^(%S+) (%d+) (%d+) (.*)$")
if last == call then
  local reply = { tonumber(left), tonumber(out) }
  for id in string.gmatch(ids, "[^\n]+") do reply[#reply + 1] = id end
  return reply
end
if size == 0 or redis.call("HGET", q.undos, token) == "-1" then return {} end

redis.call("DEL", q.scratch) -- lets a full server be drained
keep_for(list, keep_ms)
local jobs, bytes = read_last(q, list, limit)
local restored, texts = {}, #jobs[1]
for _, parts in ipairs(jobs) do restored[#restored + 1] = restore_job(q, parts, now) end
redis.call("SADD", queue_of(list)) -- `forget` may have removed it
redis.call("HINCRBY", q.undos, token, -bytes)
left, out = size / texts - #jobs, #jobs - #restored
redis.call("HSET", q.undos, noted, table.concat({ call, left, out, table.concat(restored, "\n") }, " "))
keep_for(q.undos, keep_ms)
for _, id in ipairs(restored) do redis.call("PEXPIRE", q.log .. id, live_ms) end
redis.call("LTRIM", list, 0, -#jobs * texts - 1) -- last: what a torn log leaves here is restored again
return { left, out, unpack(restored) }
