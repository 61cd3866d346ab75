-- enqueue: take in jobs, each once however often it is sent.
-- — -> queued, or scheduled when it has a time
-- uses: _prelude _lanes _schedule
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] finished    zset  id -> when it may be forgotten
-- KEYS[3] ghosts      hash  id -> lane; cancelled, but still named in a lane
-- KEYS[4] scheduled   zset  id -> due
-- KEYS[5] bands       zset  band -> priority
-- KEYS[6] turn        string  the last turn number
-- KEYS[7] lanes       zset  band:client -> since when its first job waits
-- KEYS[8] since       hash  id -> waits since
-- KEYS[9] wake        zset  token for workers
-- KEYS[10] due        zset  token for schedulers
-- KEYS[11] sweep      hash  the highest time seen
-- KEYS[12] ring       + band, zset  client -> turn
-- KEYS[13] lane       + band:client, list  ids
-- KEYS[14] stats      + minute, hash  counters
-- ARGV[...] jobs      of each: id, band, max_crashes, client, due, expires, front, body
--
-- returns for each job "ok", or "exists" when its id is known: live, or finished lately
-- sent twice: every id exists the second time, and nothing changes

local NAMES = { "jobs", "finished", "ghosts", "scheduled", "bands", "turn", "lanes", "since", "wake", "due", "sweep", "ring",
  "lane", "stats" }
local q, jobs = named(KEYS, NAMES, 1), ARGV
local FIELDS, SKEW_MS = 8, 1000
local now = now_ms(q.sweep)
local seen, lanes, later, since, records = {}, {}, {}, {}, {}

local function note_known(ids)
  local live, finished = redis.call("HMGET", q.jobs, unpack(ids)), redis.call("ZMSCORE", q.finished, unpack(ids))
  local ghosts = redis.call("EXISTS", q.ghosts) == 1 and redis.call("HMGET", q.ghosts, unpack(ids)) or {}
  for i, id in ipairs(ids) do seen[id] = live[i] or finished[i] or ghosts[i] or nil end
end

local function line_up(id, band, client, front)
  local name, made = band .. ":" .. client, tonumber(string.sub(id, 1, 12), 16)
  -- The clock of the caller's machine may be wrong; the server's is the one that counts.
  if not made or math.abs(now - made) > SKEW_MS then
    since[#since + 1], since[#since + 2], made = id, now, now
  end
  if not lanes[name] then
    lanes[name] = { first = {}, last = {} }
    lanes[#lanes + 1] = { band, client, made }
  end
  local ids = front and lanes[name].first or lanes[name].last
  ids[#ids + 1] = id
end

local function take(id, band, max_crashes, client, due, expires, front, body)
  if seen[id] then return "exists" end
  local ready = moment(due, now) or now
  if ready > now then
    later[#later + 1], later[#later + 2] = ready, id
  else
    line_up(id, band, client, front == "1")
  end
  local line = string.format("%s %s %.0f %.0f %s\n", band, max_crashes, ready, moment(expires, ready) or 0, client)
  records[#records + 1], records[#records + 2], seen[id] = id, line .. body, true
  return "ok"
end

local ids, answers = {}, {}
for i = 1, #jobs, FIELDS do ids[#ids + 1] = jobs[i] end
note_known(ids)
for i = 1, #jobs, FIELDS do answers[#answers + 1] = take(unpack(jobs, i, i + FIELDS - 1)) end

if #lanes > 0 then index_lanes(q, lanes) end
if #since > 0 then redis.call("HSET", q.since, unpack(since)) end
for _, lane in ipairs(lanes) do
  local name = lane[1] .. ":" .. lane[2]
  if #lanes[name].last > 0 then redis.call("RPUSH", q.lane .. name, unpack(lanes[name].last)) end
  if #lanes[name].first > 0 then redis.call("LPUSH", q.lane .. name, unpack(lanes[name].first)) end
end
if #later > 0 then schedule(q, later) end
-- The records last: a torn log then leaves ids without one, which are dropped, and not jobs in no place.
if #records > 0 then
  redis.call("HSET", q.jobs, unpack(records))
  count(q.stats, now, "enqueued", #records / 2)
end
return answers
