-- note_unknown_task: note that a worker claimed a job whose task it does not know, and read the failures of the job.
-- uses: prelude
-- ARGV[1] id          the job
-- ARGV[2] task        its name
-- ARGV[3] worker      who does not know it
-- ARGV[4] slice_ms    such a job is claimed once in so many ms, at most
--
-- returns the failures of the job, one JSON a line; "" for none
-- sent twice: the job counts twice in this slice

local q, id, task, worker, slice_ms = named(), ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local MOST_TASKS, MOST_WORKERS, SECONDS = 100, 3, 3600
local now = now_ms(q.clock)
local slice = math.floor(now / slice_ms)
local failures, noted = redis.call("HGET", q.errors, id) or "", redis.call("HGET", q.unknown_tasks, task)

if not noted and redis.call("HLEN", q.unknown_tasks) >= MOST_TASKS then return failures end
local since, last, last_slice, jobs, before, names = string.match(noted or "", "^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$")
if not since or now - last > 3 * slice_ms then -- not met for long: those that were there have run, or are dead
  since, last_slice, jobs, before, names = string.format("%.0f", now), slice, 0, 0, ""
end
if slice > tonumber(last_slice) then
  jobs, before = 0, slice == last_slice + 1 and jobs or 0
end
local latest = { worker }
for name in string.gmatch(names, "%S+") do
  if name ~= worker and #latest < MOST_WORKERS then latest[#latest + 1] = name end
end
local counts = string.format("%.0f %.0f %.0f %.0f", now, slice, jobs + 1, before)
redis.call("HSET", q.unknown_tasks, task, since .. " " .. counts .. " " .. table.concat(latest, " "))
redis.call("EXPIRE", q.unknown_tasks, SECONDS)
return failures
