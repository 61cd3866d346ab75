-- store_task_hour: store what was counted of some tasks in an hour that is over, beside the other hours of that day.
-- keys: clock scratch task_days
-- ARGV[1] hour        since 1970
-- ARGV[2] next        the first hour that is not stored yet, after the last call of an hour; "" before
-- ARGV[...] given     task, kind and number of each counter, separated by spaces; at most 100 tasks
--
-- returns "ok"
-- sent twice: the line of an hour replaces that of the same hour

local q, hour, next_hour, given = named(), ARGV[1], ARGV[2], { select(3, unpack(ARGV)) }
local DAY_SECONDS = 2764800 -- after the last hour of a day
local key, names, flat = q.task_days .. string.format("%.0f", math.floor(hour / 24)), {}, {}
for i = 1, #given, 2 do names[#names + 1] = given[i] end
local days = #names > 0 and redis.call("HMGET", key, unpack(names)) or {}

-- The lines of a day with that of this hour.
local function with_line(lines, line)
  if not lines then return line end
  local at = string.find("\n" .. lines, "\n" .. hour .. " ", 1, true)
  if at then
    local ends = string.find(lines, "\n", at, true) or #lines
    lines = string.sub(lines, 1, at - 1) .. string.sub(lines, ends + 1)
  end
  if lines == "" or string.sub(lines, -1) == "\n" then return lines .. line end
  return lines .. "\n" .. line
end

for i, lines in ipairs(days) do
  flat[2 * i - 1], flat[2 * i] = names[i], with_line(lines, hour .. " " .. given[2 * i])
end
redis.call("DEL", q.scratch) -- lets a full server be drained
if #flat > 0 then
  redis.call("HSET", key, unpack(flat))
  redis.call("EXPIRE", key, DAY_SECONDS)
end
if next_hour ~= "" then redis.call("HSET", q.clock, "tasks_stored", next_hour) end
return "ok"
