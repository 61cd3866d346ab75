-- stop: settle jobs that were asked to stop, and did.
-- running -> cancelled
-- uses: prelude settle
-- keys: running jobs failures crashes errors since retrying results finished sweep scratch stats waiting over
--       stopping progress digests due scheduled unique kept later
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[...] jobs      of each: id, ms to keep, outcome; at most 500
--
-- returns the ids that were stale: no longer this worker's to settle
-- sent twice: every id is stale the second time, and nothing changes

local q, most, jobs = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }

local stale = finish_runs(q, jobs, most, now_ms(q.sweep), "cancelled")
return stale
