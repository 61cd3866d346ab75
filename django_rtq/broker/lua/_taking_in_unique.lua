-- _taking_in_unique: a new job that may hold a digest, from what the caller sends to what is kept.

local PARTS = { "id", "band", "max_crashes", "client", "due", "expires", "front", "body", "digest", "span", "ms", "conflict" }

-- The job whose arguments begin at that place.
local function job_at(jobs, place, now)
  local job = {}
  for i, name in ipairs(PARTS) do job[name] = jobs[place + i - 1] end
  job.ready = moment(job.due, now) or now
  job.note = job.span .. " " .. job.ms .. " " .. job.digest
  return job
end

local function record_of(job)
  return new_record(job.band, job.max_crashes, job.ready, job.expires, job.client, job.body)
end

-- The record comes after the place, and the note last: what a torn log keeps of this holds nothing.
local function take_in(q, job, now)
  if job.digest ~= "" then hold(q, job.id, job.digest, job.ms + math.max(0, job.ready - now)) end
  if job.ready > now then
    schedule(q, job.client, job.ready, job.id)
  else
    line_up(q, job.id, job.band, job.client, job.front, now)
  end
  redis.call("HSET", q.jobs, job.id, record_of(job))
  if job.digest ~= "" then redis.call("HSET", q.digests, job.id, job.note) end
end
