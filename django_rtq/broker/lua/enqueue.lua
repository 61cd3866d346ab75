-- enqueue: take in jobs, each once however often it is sent.
-- — -> queued, or scheduled when it has a time
-- uses: _prelude _lanes
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
local indexed, answers, taken = {}, {}, 0

local function is_known(id)
  return redis.call("HEXISTS", q.jobs, id) == 1
    or redis.call("ZSCORE", q.finished, id)
    or redis.call("HEXISTS", q.ghosts, id) == 1
end

local function schedule(id, due)
  local next_due = redis.call("ZRANGE", q.scheduled, 0, 0, "WITHSCORES")[2]
  redis.call("ZADD", q.scheduled, due, id)
  if not next_due or due < tonumber(next_due) then redis.call("ZADD", q.due, 0, "due") end
end

local function line_up(id, band, client, front)
  local lane, made = band .. ":" .. client, tonumber(string.sub(id, 1, 12), 16)
  -- The clock of the caller's machine may be wrong; the server's is the one that counts.
  if not made or math.abs(now - made) > SKEW_MS then redis.call("HSET", q.since, id, now) end
  if not indexed[lane] then index_lane(q, band, client, now) end
  indexed[lane] = true
  redis.call(front and "LPUSH" or "RPUSH", q.lane .. lane, id)
end

for i = 1, #jobs, FIELDS do
  local id, band, max_crashes, client, due, expires, front, body = unpack(jobs, i, i + FIELDS - 1)
  if is_known(id) then
    answers[#answers + 1] = "exists"
  else
    local ready = moment(due, now) or now
    if ready > now then schedule(id, ready) else line_up(id, band, client, front == "1") end
    -- The record last: a torn log then leaves an id without a record, which is dropped, and not a job in no place.
    redis.call("HSET", q.jobs, id, string.format("%s %s %.0f %.0f %s\n", band, max_crashes, ready,
      moment(expires, ready) or 0, client) .. body)
    answers[#answers + 1], taken = "ok", taken + 1
  end
end

if taken > 0 then count(q.stats, now, "enqueued", taken) end
return answers
