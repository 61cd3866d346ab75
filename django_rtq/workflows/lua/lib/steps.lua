-- steps: what jobs remember of earlier runs.
--
-- `steps` + id has these fields: "step <name>", its end (ms), its time (µs) and its result, JSON; "event <number> <name>", when
-- it came (ms) and its value, JSON, or nothing: the wait for it has timed out; "last <name>", the number of the last such event;
-- "token <name>\n<token>", the number of the one that came with a token; "sent" and "bytes", how many events came, and the bytes
-- of their values.
--
-- `step_jobs` names the jobs that have any of this, so that most queues have nothing to look for. It says until when a job sleeps
-- or waits at the most (ms), then what for: "<sleeps so far> <events read so far>", and for an event " <its number> <its name>".
-- uses: prelude lanes schedule unique
-- created when first called

-- What a job waits for, or has waited for last, by its entry in `step_jobs`; nil: it never did.
local function read_wait(entry)
  local due, text = string.match(entry or "", "^(%d+) (.*)$")
  if not due then return nil end
  local reads, event = string.match(text, "^%d+ (%d+) ?(.*)$")
  return { due = tonumber(due), text = text, reads = tonumber(reads), event = event }
end

-- Whether a job has slept or waited: it has begun, though it may not run now.
local function has_waited(q, id)
  return (redis.call("HGET", q.step_jobs, id) or "") ~= ""
end

-- A job waits. It keeps its time if it waited for the same before. Returns when it goes on at the latest.
local function begin_wait(q, id, text, now, due)
  local former, key = read_wait(redis.call("HGET", q.step_jobs, id)), q.steps .. id
  if former and former.text == text then
    due = former.due
  else
    -- The job has gone on without the event, so the next one is that of a later wait.
    if former and former.event ~= "" and former.due <= now and redis.call("HSETNX", key, "event " .. former.event, "") == 1 then
      local number, name = string.match(former.event, "^(%d+) (.*)$")
      redis.call("HSET", key, "last " .. name, number)
    end
    redis.call("HSET", q.step_jobs, id, string.format("%.0f ", due) .. text)
    redis.call("HDEL", q.failures, id) -- the job has got further: what went wrong before that counts no longer
    redis.call("HDEL", q.crashes, id)
  end
  local event = string.match(text, "^%d+ %d+ (.+)$")
  return event and redis.call("HEXISTS", key, "event " .. event) == 1 and now or due
end

-- What a job waits for is over now: a sleep has ended, an event has timed out.
local function end_wait(q, id, now)
  local wait = read_wait(redis.call("HGET", q.step_jobs, id))
  if wait then redis.call("HSET", q.step_jobs, id, string.format("%.0f ", now) .. wait.text) end
end

-- A unique job keeps its digest while it waits, unless it was to hold it until its start only.
local function keep_digest(q, id, ms)
  local span, limit, digest = read_digest(q, id)
  if not digest or redis.call("GET", q.unique .. digest) ~= id then return end
  if span == "done" then acquire_unique(q, id, digest, limit + ms) else release_unique(q, { id }) end
end

-- A running job goes on in another run: after so many ms at the latest.
local function suspend(q, id, record, ms, text, now)
  local due = begin_wait(q, id, text, now, now + ms)
  keep_digest(q, id, math.max(0, due - now))
  -- It is ready then, and does not expire any more.
  record = string.gsub(record, "^(%S+ %S+) %d+ %d+ ", string.format("%%1 %.0f 0 ", due), 1)
  redis.call("HSET", q.jobs, id, record)
  if due <= now then push_back(q, id, record, now) else schedule(q, select(2, read_header(record)), due, id) end
end

-- Forget what these jobs remember. Their entry in `step_jobs` goes last: until then, sending it again goes on. Of jobs whose
-- outcome is kept, at these places of a list, people can see the steps as long: see store_outcomes.
local function forget_steps(q, ids, list, places)
  if redis.call("EXISTS", q.step_jobs) == 0 then return end
  for i, entry in ipairs(redis.call("HMGET", q.step_jobs, unpack(ids))) do
    if entry then
      local place = places and places[i]
      redis.call("PEXPIRE", q.steps .. ids[i], place and list[place + 2] ~= "" and list[place + 1] or 0)
      redis.call("HDEL", q.step_jobs, ids[i])
    end
  end
end
