-- ack: settle jobs that are done.
-- running -> succeeded
-- uses: prelude settle
-- keys: running jobs failures crashes errors since retrying results finished sweep scratch stats waiting over
--       scheduled due digests unique stopping progress kept later
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[2] run_ms      how long these jobs ran, together
-- ARGV[3] wait_ms     how long they had waited, together
-- ARGV[...] jobs      of each: id, ms to keep, outcome ("": only the id); at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, most, run_ms, wait_ms = named(), tonumber(ARGV[1]), ARGV[2], ARGV[3]
local jobs = { select(4, unpack(ARGV)) }
local now = now_ms(q.sweep)

-- A worker that was given up for dead may still be alive and finish late.
-- By then its jobs were given to others, and they are not ours to settle.
local stale, ended = finish_runs(q, jobs, most, now, "succeeded")
if ended > 0 then
  count(q.stats, now, "run_ms", run_ms)
  count(q.stats, now, "wait_ms", wait_ms)
end
return stale
