-- enqueue: add one job, as delay() does, once however often it is sent. Jobs that have a time go to enqueue_many.
-- uses: prelude enqueue known_ids
-- ARGV[1] id          the job
-- ARGV[2] band        its priority
-- ARGV[3] max_crashes "": the body is a whole record, and says when the job was made by the caller's clock
-- ARGV[4] client
-- ARGV[5] expires     "+ms" from now, "ms" since 1970, "" never
-- ARGV[6] front       "1": before the other jobs of its client, else ""
-- ARGV[7] body        JSON; a large one comes as a record, because Lua hashes every string, so joining costs a lot
--
-- returns "ok"; "exists" if its id is known: live, or finished lately; "limited" if enqueue_many has to see whether it fits
-- sent twice: the id exists the second time, and nothing changes

local q, id, band, max_crashes, client = named(), ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local expires, front, body = ARGV[5], ARGV[6], ARGV[7]
local now = now_ms(q.clock)
local at, recent = string.format("%.0f", now), is_recent(id, now) -- formatted once: Redis prints numbers slowly

if is_known(q, id, recent) then return "exists" end
if redis.call("EXISTS", q.waiting_limits) == 1 then return "limited" end
local record = body
if max_crashes ~= "" then record = new_record(band, max_crashes, at, expires, client, body) end
if max_crashes == "" and not recent then record = string.gsub(body, "^(%S+ %S+) %d+", "%1 " .. at, 1) end
push_new(q, id, band, client, front, at, recent)
-- The record last: a torn log then leaves an id without a record, which is dropped, but no job outside of all lanes.
redis.call("HSET", q.jobs, id, record)
count(q.stats, now, "enqueued", "1")
return "ok"
