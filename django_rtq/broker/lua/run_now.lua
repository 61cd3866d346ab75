-- run_now: queue a job whose time has not come yet.
-- scheduled, retrying -> queued
-- uses: _prelude _lanes _schedule _digests
--
-- KEYS[1] scheduled   zset  id -> due
-- KEYS[2] retrying    zset  id -> due; those of scheduled that have failed
-- KEYS[3] jobs        hash  id -> record
-- KEYS[4] finished    zset  id -> when trim looks at it next
-- KEYS[5] bands       zset  band -> priority
-- KEYS[6] turn        string  the last turn number
-- KEYS[7] lanes       zset  band:client -> since when its first job waits
-- KEYS[8] since       hash  id -> waits since
-- KEYS[9] wake        zset  token for workers
-- KEYS[10] sweep      hash  the highest time seen
-- KEYS[11] scratch    never exists; see the rules for scripts
-- KEYS[12] ring       + band, zset  client -> turn
-- KEYS[13] lane       + band:client, list  ids
-- KEYS[14] digests    hash  id -> until when, ms, digest, heir
-- KEYS[15] unique     + digest, string  id of the job that holds it
-- KEYS[16] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] id          the job
--
-- returns "queued", or why not: "missing", "finished", "elsewhere": it waits for no time (any more), or "after <id>":
--         it waits for the end of that one, which is like it
-- sent twice: "elsewhere" or "finished", and nothing changes

local q, id = named(), ARGV[1]
local now, record = now_ms(q.sweep), redis.call("HGET", q.jobs, id)

if not record then return redis.call("ZSCORE", q.finished, id) and "finished" or "missing" end
if not redis.call("ZSCORE", q.scheduled, id) then return "elsewhere" end
local _, _, digest = note_of(q, id)
local first = digest and redis.call("GET", q.unique .. digest)
if first and first ~= id and is_heir(q, id) and select(4, note_of(q, first)) == id then return "after " .. first end
local _, client = header(record)
redis.call("DEL", q.scratch) -- lets a full server be drained
queue_up(q, id, record, now)
redis.call("ZREM", q.retrying, id)
unschedule(q, client, { id })
return "queued"
