-- begin_schedule: count the slots of a schedule from now on: it is new, or its definition is.
-- uses: prelude
-- keys: schedules clock
-- ARGV[1] name        of the schedule
-- ARGV[2] definition  a digest that changes when the moments do
-- ARGV[3] moment      from which on slots count, ms
--
-- returns "begun", or "already" when it counts with this definition
-- sent twice: "already", and nothing changes

local q, name, definition, since = named(), ARGV[1], ARGV[2], ARGV[3]
local now = now_ms(q.clock)
local state = redis.call("HGET", q.schedules, name) or ""
local last_slot, last_id, last_definition, began = string.match(state, "^(%d+) (%S+) (%S+) (%d+)$")

-- A clock that was ahead by more than an hour was wrong then: else nothing would fire until it is that late again.
local function is_sound(ms) return ms and tonumber(ms) - now < HOUR_MS end

if last_definition == definition and is_sound(last_slot) and is_sound(began) then return "already" end
-- The last slot is kept: while two versions of a project run, each begins, and must not take a slot from the other.
if not is_sound(last_slot) then last_slot, last_id = "0", "-" end
redis.call("HSET", q.schedules, name, last_slot .. " " .. last_id .. " " .. definition .. " " .. since)
return "begun"
