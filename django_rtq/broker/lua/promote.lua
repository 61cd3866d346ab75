-- promote: put jobs whose time has come into their lanes.
-- scheduled, retrying -> queued
-- uses: _prelude _lanes
--
-- KEYS[1] scheduled   zset  id -> due
-- KEYS[2] retrying    zset  id -> due; those of scheduled that have failed
-- KEYS[3] jobs        hash  id -> record
-- KEYS[4] bands       zset  band -> priority
-- KEYS[5] turn        string  the last turn number
-- KEYS[6] lanes       zset  band:client -> since when its first job waits
-- KEYS[7] since       hash  id -> waits since
-- KEYS[8] wake        zset  token for workers
-- KEYS[9] sweep       hash  the highest time seen, and when somebody promoted last
-- KEYS[10] scratch    never exists; see the rules for scripts
-- KEYS[11] ring       + band, zset  client -> turn
-- KEYS[12] lane       + band:client, list  ids
-- ARGV[1] limit       jobs in this call, at most 100
--
-- returns {ms until the next is due, or -1, id, ...}: what was promoted
-- sent twice: goes on where the first call stopped

local NAMES = { "scheduled", "retrying", "jobs", "bands", "turn", "lanes", "since", "wake", "sweep", "scratch", "ring",
  "lane" }
local q, limit = named(KEYS, NAMES, 1), tonumber(ARGV[1])
local now, answer = now_ms(q.sweep), { -1 }

redis.call("DEL", q.scratch) -- lets a full server be drained
redis.call("HSET", q.sweep, "promoted", now) -- for people: somebody looks after what is due
local ready = redis.call("ZRANGEBYSCORE", q.scheduled, "-inf", now, "WITHSCORES", "LIMIT", 0, limit)
for i = 1, #ready, 2 do
  local id, due = ready[i], ready[i + 1]
  local record = redis.call("HGET", q.jobs, id)
  if record then
    queue_up(q, id, record, due)
    answer[#answer + 1] = id
  end
  redis.call("ZREM", q.retrying, id)
  redis.call("ZREM", q.scheduled, id) -- last: a torn log may cost a second run, not a job
end
local next_due = redis.call("ZRANGE", q.scheduled, 0, 0, "WITHSCORES")[2]
if next_due then answer[1] = math.max(0, next_due - now) end
return answer
