-- fire: start a periodic job for one slot of its schedule, once, whoever comes first.
-- — -> queued
-- uses: _prelude _lanes
--
-- KEYS[1] schedules   hash  name -> last slot, last job, print of the definition
-- KEYS[2] jobs        hash  id -> record
-- KEYS[3] dead        zset  id -> time of death
-- KEYS[4] finished    zset  id -> when it may be forgotten
-- KEYS[5] bands       zset  band -> priority
-- KEYS[6] turn        string  the last turn number
-- KEYS[7] lanes       zset  band:client -> since when its first job waits
-- KEYS[8] since       hash  id -> waits since
-- KEYS[9] wake        zset  token for workers
-- KEYS[10] sweep      hash  the highest time seen
-- KEYS[11] ring       + band, zset  client -> turn
-- KEYS[12] lane       + band:client, list  ids
-- KEYS[13] stats      + minute, hash  counters
-- ARGV[1] name        of the schedule
-- ARGV[2] slot        the moment for which it fires, ms
-- ARGV[3] print       of the definition, which changes when the moments do
-- ARGV[4] mode        "begin" to count from this slot on; else "allow", or "skip" while the last job lives
-- ARGV[5] id          made of name and slot
-- ARGV[6] band        the job's priority
-- ARGV[7] max_crashes
-- ARGV[8] client
-- ARGV[9] expires
-- ARGV[10] body       JSON
--
-- returns "fired", "begun"; or why not: "already" for a slot that is over or a schedule that has begun,
--         "overlap" while the last job lives, "unknown" for a schedule, or a definition, that has not begun
-- sent twice: "already", and nothing changes

local NAMES = { "schedules", "jobs", "dead", "finished", "bands", "turn", "lanes", "since", "wake", "sweep", "ring",
  "lane", "stats" }
local q = named(KEYS, NAMES, 1)
local name, slot, print, mode, id, band, max_crashes, client, expires, body = unpack(ARGV)
local now = now_ms(q.sweep)
local last_slot, last_id, last_print = string.match(redis.call("HGET", q.schedules, name) or "", "^(%d+) (%S+) (%S+)$")

local function note(job) redis.call("HSET", q.schedules, name, slot .. " " .. job .. " " .. print) end

if mode == "begin" then
  if last_print == print then return "already" end
  note("-")
  return "begun"
end
if last_print ~= print then return "unknown" end
if tonumber(slot) <= tonumber(last_slot) then return "already" end
if mode == "skip" and redis.call("HEXISTS", q.jobs, last_id) == 1 and not redis.call("ZSCORE", q.dead, last_id) then
  note(last_id)
  return "overlap"
end
if redis.call("HEXISTS", q.jobs, id) == 0 and not redis.call("ZSCORE", q.finished, id) then
  local line = string.format("%s %s %s %.0f %s\n", band, max_crashes, slot, moment(expires, slot) or 0, client)
  queue_up(q, id, line .. body, slot)
  redis.call("HSET", q.jobs, id, line .. body)
  count(q.stats, now, "enqueued", 1)
end
note(id) -- last: a torn log may cost a second try, which finds the job, and not the slot
return "fired"
