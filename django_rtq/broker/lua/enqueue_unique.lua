-- enqueue_unique: take in jobs of which no second like them may live.
-- — -> queued, or scheduled when it has a time, or when it is to run after the one that runs
-- uses: _prelude _lanes _schedule _taking_in _digests _taking_in_unique _runners _unique _conflicts
--
-- KEYS[1] jobs        hash  id -> record
-- KEYS[2] finished    zset  id -> when trim looks at it next
-- KEYS[3] ghosts      hash  id -> lane; cancelled, but still named in a lane
-- KEYS[4] scheduled   zset  id -> due
-- KEYS[5] retrying    zset  id -> due
-- KEYS[6] dead        zset  id -> time of death
-- KEYS[7] failures    hash  id -> runs that failed
-- KEYS[8] crashes     hash  id -> runs that took their worker down
-- KEYS[9] digests     hash  id -> until when, ms, digest, heir
-- KEYS[10] unique     + digest, string  id of the job that holds it
-- KEYS[11] workers    zset  worker -> lease deadline
-- KEYS[12] running    + worker, hash  id -> attempt and claim time
-- KEYS[13] bands      zset  band -> priority
-- KEYS[14] turn       string  the last turn number
-- KEYS[15] lanes      zset  band:client -> since when its first job waits
-- KEYS[16] since      hash  id -> waits since
-- KEYS[17] wake       zset  token for workers
-- KEYS[18] due        zset  token for schedulers
-- KEYS[19] sweep      hash  the highest time seen
-- KEYS[20] ring       + band, zset  client -> turn
-- KEYS[21] lane       + band:client, list  ids
-- KEYS[22] stats      + minute, hash  counters
-- KEYS[23] later      zset  client -> when it is looked at next; + ":" and client, zset  id -> due
-- ARGV[...] jobs      of each: those of enqueue (id, band, max_crashes, client, due, expires, front, body), and
--                     digest ("": not unique), until when it holds it ("start", "done"), for how many ms at the most,
--                     and what to do when another holds it: "replace" it, "rerun" it, or nothing ("return", "raise")
--
-- returns for each job "ok"; "exists" when its id is known; "duplicate <id>" of the one that holds its digest;
--         "after <id>" when it is taken in, and waits for the end of that one
-- sent twice: every id exists the second time, or is the same duplicate; a replaced one gets its time anew

local q, jobs = named(), ARGV
local now, answers, taken = now_ms(q.sweep), {}, 0

local function enqueue(job)
  local first, heir
  if job.digest ~= "" then first, heir = holder(q, job.digest) end
  if first and heir == job.id then return "after " .. first end
  if is_known(q, job.id) then return "exists" end
  if not first then
    take_in(q, job, now)
    taken = taken + 1
    return "ok"
  end
  if job.conflict == "replace" then replace(q, first, job, now) end
  if job.conflict == "rerun" and come_after(q, first, heir, job) then
    taken = taken + 1
    return "after " .. first
  end
  return "duplicate " .. first
end

for place = 1, #jobs, #PARTS do answers[#answers + 1] = enqueue(job_at(jobs, place, now)) end
if taken > 0 then count(q.stats, now, "enqueued", taken) end
return answers
