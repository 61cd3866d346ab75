-- fire_schedule: enqueue a periodic job for one slot of its schedule, once, however many schedulers try.
-- uses: prelude enqueue unique known_ids waiting
-- ARGV[1] name        of the schedule
-- ARGV[2] slot        the moment for which it fires, ms
-- ARGV[3] overlap     "allow", or "skip" while the last job lives
-- ARGV[...] job      as in enqueue_many, with 12 arguments: its id is made from slot and name, and starts with the slot, the
--                     time since which it waits, whatever its due says
--
-- returns "fired"; or why not: "already" for a slot that has fired, "overlap" while the last job
--         lives, "duplicate <id>" of the owner of its digest, "unknown" for a schedule that has not begun; "full ..." as
--         enqueue_many
-- sent twice: "already", and nothing changes

local q, name, slot, overlap = named(), ARGV[1], ARGV[2], ARGV[3]
local id, band, max_crashes, client, _, expires, front, body, digest, span, ms = unpack(ARGV, 4)
local now = now_ms(q.clock)
local state = redis.call("HGET", q.schedules, name) or ""
local last_slot, last_id, rest = string.match(state, "^(%d+) (%S+)( %S+ %d+)$")

-- The slot is over, and nothing runs.
local function skip(answer)
  redis.call("HSET", q.schedules, name, slot .. " " .. last_id .. rest)
  return answer
end

if not last_slot then return "unknown" end
if tonumber(slot) <= tonumber(last_slot) then return "already" end
if overlap == "skip" and redis.call("HEXISTS", q.jobs, last_id) == 1 and not redis.call("ZSCORE", q.dead, last_id) then
  return skip("overlap")
end
local first = digest ~= "" and unique_owner(q, digest)
if first and first ~= id then return skip("duplicate " .. first) end
-- A server that was restored to an older state may know the job, but not that its slot has fired.
local is_new = redis.call("HEXISTS", q.jobs, id) == 0 and not is_finished(q, id)
local has_limit = is_new and redis.call("EXISTS", q.waiting_limits) == 1
local full = has_limit and take_place(q, {}, client)
if full then return skip(full) end
if is_new then
  local record = new_record(band, max_crashes, slot, expires, client, body)
  if digest ~= "" then acquire_unique(q, id, digest, ms) end
  push_new(q, id, band, client, front, slot, true)
  redis.call("HSET", q.jobs, id, record)
  if digest ~= "" then redis.call("HSET", q.digests, id, span .. " " .. ms .. " " .. digest) end
  count(q.stats, now, "enqueued", 1)
end
redis.call("HSET", q.schedules, name, slot .. " " .. id .. rest) -- last: a torn log may cost a second run, not a slot
return "fired"
