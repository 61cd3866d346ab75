-- release: give jobs back unrun, to be claimed next; the attempt is not counted.
-- running -> queued
-- uses: _prelude _lanes
--
-- KEYS[1] running     hash  id -> attempt and claim time; the processing list of this worker
-- KEYS[2] jobs        hash  id -> record
-- KEYS[3] bands       zset  band -> priority
-- KEYS[4] turn        string  the last turn number
-- KEYS[5] lanes       zset  band:client -> since when its first job waits
-- KEYS[6] since       hash  id -> waits since
-- KEYS[7] wake        zset  token for workers
-- KEYS[8] sweep       hash  the highest time seen
-- KEYS[9] scratch     never exists; see the rules for scripts
-- KEYS[10] ring       + band, zset  client -> turn
-- KEYS[11] lane       + band:client, list  ids
-- ARGV[...] ids       in the order in which they were claimed; at most 500
--
-- returns the ids that were stale: no longer this worker's to give back
-- sent twice: every id is stale the second time, and nothing changes

local NAMES = { "running", "jobs", "bands", "turn", "lanes", "since", "wake", "sweep", "scratch", "ring", "lane" }
local q, ids = named(KEYS, NAMES, 1), ARGV
local now = now_ms(q.sweep)
local mine, stale = held_by(q.running, ids, 1)
if #mine == 0 then return stale end

redis.call("DEL", q.scratch) -- lets a full server be drained
for place = #mine, 1, -1 do -- the first claimed comes to the front last
  local id = ids[mine[place]]
  local record = redis.call("HGET", q.jobs, id)
  if record then give_back(q, id, record, now) end
  redis.call("HDEL", q.running, id) -- last: a torn log may cost a second run, not a job
end
return stale
