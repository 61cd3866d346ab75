-- append_log: keep lines that jobs have logged, of each the last 200, and 100 kB at the most.
-- KEYS[2] running     the worker's processing list
-- ARGV[1] live_ms     how long the lines of a job that is not over, or dead, are kept
-- ARGV[2] most        jobs that are over and whose lines are kept in this queue
-- ARGV[...] parts     of each: the id of the job; "<token>-<number>": a token of the process and a number that grows
--                     with each part; how long its lines are kept if it is over, "": it is not, or it is dead; how many
--                     lines follow (0: only the time for which they are kept changes), and these. At most 100
--
-- returns {}
-- sent twice: a part that is known, and those before it, are not added again
--
-- A full server refuses lines. The worker drops them, and settles the jobs.

local q, live_ms, most, parts = named(), ARGV[1], tonumber(ARGV[2]), ARGV
local MAX_LINES, MAX_BYTES, FEW, AT_ONCE, FIRST_PART = 200, 100000, 10, 200, 3
local over = {}

-- How many of the last lines fit.
local function lines_that_fit(log)
  local kept = redis.call("LRANGE", log, -MAX_LINES, -1)
  local bytes, first = 0, #kept + 1
  while first > 1 and bytes + #kept[first - 1] <= MAX_BYTES do
    first = first - 1
    bytes = bytes + #kept[first]
  end
  return #kept - first + 1
end

-- Whether an entry of a log is of a part, or of a later one of the same process.
local function is_known(log, part, at)
  local token, number = string.match(part, "^(.*)%-(%d+)$")
  local last_token, last_number = string.match(redis.call("LINDEX", log, at) or "", "^(%S*)%-(%d+) ")
  return last_token == token and tonumber(last_number) >= tonumber(number)
end

-- Add the lines of a part, if it is not known. Returns whether they were added. Most logs are new: then nothing is read.
local function add_lines(log, part, first, last)
  local lines = {}
  for i = first, last do lines[#lines + 1] = part .. " " .. parts[i] end
  local length = redis.call("RPUSH", log, unpack(lines))
  if length > #lines and is_known(log, part, length - #lines - 1) then
    redis.call("LTRIM", log, 0, length - #lines - 1)
    return false
  end
  if length > FEW then redis.call("LTRIM", log, -lines_that_fit(log), -1) end
  return true
end

local function append(id, part, over_ms, first, last)
  local log = q.log .. id
  if redis.call("HEXISTS", q.running, id) == 0 then return end
  local is_new
  if first <= last then is_new = add_lines(log, part, first, last) else is_new = not is_known(log, part, -1) end
  local is_kept = redis.call("PEXPIRE", log, over_ms == "" and live_ms or over_ms) == 1
  if is_kept and over_ms ~= "" and is_new then over[#over + 1] = id end
end

local at = FIRST_PART
while at < #parts do
  local last = at + 3 + tonumber(parts[at + 3])
  append(parts[at], parts[at + 1], parts[at + 2], at + 4, last)
  at = last + 1
end
if #over == 0 then return {} end

local too_many = redis.call("RPUSH", q.logged, unpack(over)) - most
redis.call("PEXPIRE", q.logged, live_ms)
local gone = too_many > 0 and redis.call("LRANGE", q.logged, 0, math.min(too_many, AT_ONCE) - 1) or {}
for _, other in ipairs(gone) do redis.call("UNLINK", q.log .. other) end
if #gone > 0 then redis.call("LTRIM", q.logged, #gone, -1) end
return {}
