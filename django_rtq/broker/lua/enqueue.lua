-- enqueue: add one job, as delay() does, once however often it is sent.
-- — -> queued, or scheduled when it has a time
-- uses: prelude schedule enqueue known_ids
-- keys: jobs finished finished_before cancelled_in_lane scheduled bands turn lanes waiting_since work_signal
--       due_signal clock ring lane stats scheduled_by_client
-- ARGV[1] id          the job
-- ARGV[2] band        its priority
-- ARGV[3] max_crashes
-- ARGV[4] client
-- ARGV[5] due         "+ms" from now, "ms" since 1970, "" now
-- ARGV[6] expires     "+ms" after it is ready, "ms" since 1970, "" never
-- ARGV[7] front       "1": before the other jobs of its client, else ""
-- ARGV[8] body        JSON
--
-- returns {"ok"}, or {"exists"} if its id is known: live, or finished lately
-- sent twice: the id exists the second time, and nothing changes

local q, id, band, max_crashes, client = named(), ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local due, expires, front, body = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local now = now_ms(q.clock)

if is_known(q, id) then return { "exists" } end
local ready = parse_time(due, now) or now
if ready > now then schedule(q, client, ready, id) else push_new(q, id, band, client, front, now) end
-- The record last: a torn log then leaves an id without a record, which is dropped, but no job outside of all lanes.
redis.call("HSET", q.jobs, id, new_record(band, max_crashes, ready, expires, client, body))
count(q.stats, now, "enqueued", 1)
return { "ok" }
