-- append_log: keep lines that a job has logged, the last 200, and 100 kB at the most.
-- keys: running log logged
-- ARGV[1] id          the job
-- ARGV[2] part        a token of the process and a number that grows with each call, "<token>-<number>"
-- ARGV[3] live_ms     how long the lines of a job that is not over, or dead, are kept
-- ARGV[4] over_ms     the job is over: how long its lines are kept; "": it is not, or it is dead
-- ARGV[5] most        jobs that are over and whose lines are kept in this queue
-- ARGV[...] lines     none: only the time for which they are kept changes
--
-- returns {}
-- sent twice: a part that is known, and those before it, are not added again
--
-- A full server refuses lines: the script does not begin with DEL scratch. The worker drops them, and settles the job.

local q, id, part, live_ms, over_ms, most = named(), ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local MAX_LINES, MAX_BYTES, FEW, AT_ONCE = 200, 100000, 10, 100
local log, lines = q.log .. id, { select(6, unpack(ARGV)) }

if redis.call("HEXISTS", q.running, id) == 0 then return {} end
local token, number = string.match(part, "^(.*)%-(%d+)$")
local last_token, last_number = string.match(redis.call("LINDEX", log, -1) or "", "^(%S*)%-(%d+) ")
local is_known = last_token == token and tonumber(last_number) >= tonumber(number)

-- How many of the last lines fit.
local function lines_that_fit()
  local kept = redis.call("LRANGE", log, -MAX_LINES, -1)
  local bytes, first = 0, #kept + 1
  while first > 1 and bytes + #kept[first - 1] <= MAX_BYTES do
    first = first - 1
    bytes = bytes + #kept[first]
  end
  return #kept - first + 1
end

if #lines > 0 and not is_known then
  for i, line in ipairs(lines) do lines[i] = part .. " " .. line end
  local length = redis.call("RPUSH", log, unpack(lines))
  if length > FEW then redis.call("LTRIM", log, -lines_that_fit(), -1) end
end
local is_kept = redis.call("PEXPIRE", log, over_ms == "" and live_ms or over_ms) == 1
if not is_kept or over_ms == "" or is_known then return {} end

local over = redis.call("RPUSH", q.logged, id) - most
redis.call("PEXPIRE", q.logged, live_ms)
local gone = over > 0 and redis.call("LRANGE", q.logged, 0, math.min(over, AT_ONCE) - 1) or {}
for _, other in ipairs(gone) do redis.call("UNLINK", q.log .. other) end
if #gone > 0 then redis.call("LTRIM", q.logged, #gone, -1) end
return {}
