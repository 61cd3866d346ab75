-- enqueue: take in the one job of a delay(), as directly as can be, and once however often it is sent.
-- — -> queued, or scheduled when it has a time
-- uses: _prelude _lanes _schedule _taking_in
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] finished    zset  id -> when trim looks at it next
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
-- KEYS[15] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] id          the job
-- ARGV[2] band        its priority
-- ARGV[3] max_crashes
-- ARGV[4] client
-- ARGV[5] due         "+ms" from now, "ms" since 1970, "" at once
-- ARGV[6] expires     "+ms" after it is ready, "ms" since 1970, "" never
-- ARGV[7] front       "1": before the other jobs of its client, else ""
-- ARGV[8] body        JSON
--
-- returns {"ok"}, or {"exists"} when its id is known: live, or finished lately
-- sent twice: the id exists the second time, and nothing changes

local q, id, band, max_crashes, client = named(), ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local due, expires, front, body = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local now = now_ms(q.sweep)

if is_known(q, id) then return { "exists" } end
local ready = moment(due, now) or now
if ready > now then schedule(q, client, ready, id) else line_up(q, id, band, client, front, now) end
-- The record last: a torn log then leaves an id without one, which is dropped, and not a job in no place.
redis.call("HSET", q.jobs, id, new_record(band, max_crashes, ready, expires, client, body))
count(q.stats, now, "enqueued", 1)
return { "ok" }
