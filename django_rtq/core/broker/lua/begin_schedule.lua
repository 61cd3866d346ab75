-- begin_schedule: start to count the slots of a schedule that is new or was changed.
-- uses: prelude
-- ARGV[1] name        of the schedule
-- ARGV[2] definition  a digest that changes with the times of the schedule
-- ARGV[3] moment      slots after it count, ms
--
-- returns "begun", or "already" if it counts with this definition
-- sent twice: "already", and nothing changes

local q, name, definition, since = named(), ARGV[1], ARGV[2], ARGV[3]
local now = now_ms(q.clock)
local state = redis.call("HGET", q.schedules, name) or ""
local last_slot, last_id, last_definition, began = string.match(state, "^(%d+) (%S+) (%S+) (%d+)$")

-- A time of more than an hour ahead comes from a wrong clock. Without this check nothing would fire until then.
local function is_sound(ms) return ms and tonumber(ms) - now < HOUR_MS end

if last_definition == definition and is_sound(last_slot) and is_sound(began) then return "already" end
-- Keep the last slot: while two versions of a project run, each begins anew, and no slot may fire twice.
if not is_sound(last_slot) then last_slot, last_id = "0", "-" end
redis.call("HSET", q.schedules, name, last_slot .. " " .. last_id .. " " .. definition .. " " .. since)
return "begun"
