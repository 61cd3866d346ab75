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
local picked, lanes, since, fresh = pick_due(q, limit, now), {}, {}, {}

local function line_up(id, record, moment, band, client)
  if is_ahead and tonumber(band) then
    -- In its header, so that it comes back there whoever gives it back.
    band, record = band .. "+", string.gsub(record, "^%-?%d+", "%0+", 1)
    fresh[#fresh + 1], fresh[#fresh + 2] = id, record
  end
  local name = band .. ":" .. client
  if not lanes[name] then
    lanes[name] = {}
    lanes[#lanes + 1] = { band, client, moment }
  end
  table.insert(lanes[name], id)
  since[#since + 1], since[#since + 2], answer[#answer + 1] = id, moment, id
end

for _, job in ipairs(picked.jobs) do line_up(unpack(job)) end
redis.call("DEL", q.scratch) -- lets a full server be drained
redis.call("HSET", q.sweep, "promoted", now) -- for people: somebody looks after what is due
if #fresh > 0 then redis.call("HSET", q.jobs, unpack(fresh)) end
if #since > 0 then redis.call("HSET", q.since, unpack(since)) end
for _, lane in ipairs(lanes) do
  local band, client, first_due = unpack(lane)
  index_lane(q, band, client, first_due)
  redis.call("RPUSH", q.lane .. band .. ":" .. client, unpack(lanes[band .. ":" .. client]))
end
end_looks(q, picked, now)
if #picked.ids > 0 then
  redis.call("ZREM", q.retrying, unpack(picked.ids))
  redis.call("ZREM", q.scheduled, unpack(picked.ids)) -- last: a torn log may cost second runs, not a job
end
local next_due = redis.call("ZRANGE", q.scheduled, 0, 0, "WITHSCORES")[2]
if next_due then answer[1] = math.max(0, next_due - now) end
return answer
