-- cancel: take a job out before it runs, or ask it to stop.
-- queued, scheduled, retrying -> cancelled; running -> asked to stop: cancelled, unless it succeeds before it stops
-- uses: _prelude _schedule _digests _runners _waiting _keeping _outcomes
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] scheduled   zset  id -> due
-- KEYS[3] dead        zset  id -> time of death
-- KEYS[4] ghosts      hash  id -> lane; cancelled, but still named in a lane
-- KEYS[5] failures    hash  id -> runs that failed
-- KEYS[6] crashes     hash  id -> runs that took their worker down
-- KEYS[7] errors      hash  id -> the last failures
-- KEYS[8] since       hash  id -> waits since
-- KEYS[9] retrying    zset  id -> due
-- KEYS[10] results    hash  id -> ms to keep, outcome
-- KEYS[11] finished   zset  id -> when trim looks at it next
-- KEYS[12] workers    zset  worker -> lease deadline
-- KEYS[13] sweep      hash  the highest time seen
-- KEYS[14] scratch    never exists; see the rules for scripts
-- KEYS[15] stats      + minute, hash  counters
-- KEYS[16] running    + worker, hash  id -> attempt and claim time
-- KEYS[17] waiting    zset  id -> until when somebody waits for its end
-- KEYS[18] over       + id, list  a token for who waits
-- KEYS[19] due        zset  token for schedulers
-- KEYS[20] digests    hash  id -> until when, ms, digest, heir
-- KEYS[21] unique     + digest, string  id of the job that holds it
-- KEYS[22] stopping   hash  id -> how it is to stop; runs, and was asked to
-- KEYS[23] progress   hash  id -> how far it is
-- KEYS[24] kept       zset  id -> when it finished; those of which an outcome is kept
-- KEYS[25] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[2] id          the job
-- ARGV[3] keep_ms     how long the outcome is kept
-- ARGV[4] outcome     what is kept of it
-- ARGV[5] how         it is to stop when it runs: "ask" it, or "terminate" its process
--
-- returns {"cancelled", ""}, {"asked", who runs it}, or why not: {"missing", "dead", "finished" or "already", ""};
--         "already": it is cancelled, and was before
-- sent twice: "already", or "asked" again, and nothing changes

local q, most, id = named(), tonumber(ARGV[1]), ARGV[2]
local keep_ms, outcome, how = ARGV[3], ARGV[4], ARGV[5]
local now = now_ms(q.sweep)
local record = redis.call("HGET", q.jobs, id)

if not record then
  local kept = redis.call("HGET", q.results, id) or ""
  if string.match(kept, '^%d+ {"state":"cancelled"') then return { "already", "" } end
  return { redis.call("ZSCORE", q.finished, id) and "finished" or "missing", "" }
end
if redis.call("ZSCORE", q.dead, id) then return { "dead", "" } end
redis.call("DEL", q.scratch) -- lets a full server be drained
local worker = runner_of(q, id)
if worker then
  local wish = redis.call("HGET", q.stopping, id) or ""
  if how == "terminate" or wish == "" then
    redis.call("HSET", q.stopping, id, table.concat({ how, keep_ms, most, outcome }, " "))
  end
  return { "asked", worker }
end

-- To find an id in a lane costs as much as the lane is long: it stays there, and claim passes it over.
local band, client = header(record)
local is_scheduled = redis.call("ZSCORE", q.scheduled, id)
if not is_scheduled then redis.call("HSET", q.ghosts, id, band .. ":" .. client) end
remember(q, { id, keep_ms, outcome }, { 1 }, most, now)
forget(q, { id })
if is_scheduled then unschedule(q, client, { id }) end
count(q.stats, now, "cancelled", 1)
return { "cancelled", "" }
