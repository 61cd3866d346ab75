-- promote: put jobs whose time has come into their lanes. Clients take turns when there are more than one call takes.
-- scheduled, retrying -> queued
-- uses: _prelude _lanes _later _due
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
-- KEYS[13] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] limit       jobs in this call, at most 100
-- ARGV[2] ahead       "1" where they go ahead of their band's other work, else ""
--
-- returns {ms until the next is due, or -1, id, ...}: what was promoted
-- sent twice: goes on where the first call stopped

local q, limit, is_ahead = named(), tonumber(ARGV[1]), ARGV[2] == "1"
local now, answer = now_ms(q.sweep), { -1 }
local picked = {
  limit = limit, is_ahead = is_ahead, ids = {}, has = {}, -- what leaves `scheduled`
  lanes = {}, since = {}, fresh = {}, -- where it goes
  clients = {}, leaving = {}, -- in whose indexes it was
}

-- What was picked leaves the index. Who has more that is due comes after all others that have.
local function end_looks()
  local looks, gone = {}, {}
  for _, client in ipairs(picked.clients) do
    local key = q.later .. ":" .. client
    for _, ids in ipairs(picked.leaving[client]) do redis.call("ZREM", key, unpack(ids)) end
    local next_due = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2]
    if next_due then
      looks[#looks + 1], looks[#looks + 2] = math.max(now, next_due), client
    else
      gone[#gone + 1] = client
    end
  end
  if #looks > 0 then redis.call("ZADD", q.later, unpack(looks)) end
  if #gone > 0 then redis.call("ZREM", q.later, unpack(gone)) end
end

pick_due(q, picked, now)
redis.call("DEL", q.scratch) -- lets a full server be drained
redis.call("HSET", q.sweep, "promoted", now) -- for people: somebody looks after what is due
if #picked.fresh > 0 then redis.call("HSET", q.jobs, unpack(picked.fresh)) end
if #picked.since > 0 then redis.call("HSET", q.since, unpack(picked.since)) end
for _, lane in ipairs(picked.lanes) do
  index_lane(q, lane.band, lane.client, lane.since)
  redis.call("RPUSH", q.lane .. lane.band .. ":" .. lane.client, unpack(lane.ids))
end
end_looks()
if #picked.ids > 0 then
  redis.call("ZREM", q.retrying, unpack(picked.ids))
  redis.call("ZREM", q.scheduled, unpack(picked.ids)) -- last: a torn log may cost second runs, not a job
end
local next_due = redis.call("ZRANGE", q.scheduled, 0, 0, "WITHSCORES")[2]
if next_due then answer[1] = math.max(0, next_due - now) end
for i = 1, #picked.since, 2 do answer[#answer + 1] = picked.since[i] end
return answer
