-- steps: what jobs remember of earlier runs.
--
-- `steps` + id has these fields: "step <name>", its end (ms), its time (µs) and its result, JSON; "aside", what `step_jobs` says
-- of a job that was deleted and may come back. `step_jobs` names the jobs that have any, so that most queues have nothing to
-- look for.
-- created when first called

local UNDO_MS = 3600000 -- an undo of many jobs goes on after its list would have expired

-- These jobs are set aside, and `undo` ("": they are not) may put them back: keep what they remember for a while.
local function keep_steps(q, undo, ids)
  if undo == "" or redis.call("EXISTS", q.step_jobs) == 0 then return end
  for i, entry in ipairs(redis.call("HMGET", q.step_jobs, unpack(ids))) do
    if entry then
      redis.call("HSET", q.steps .. ids[i], "aside", entry)
      redis.call("PEXPIRE", q.steps .. ids[i], UNDO_MS)
      redis.call("HDEL", q.step_jobs, ids[i])
    end
  end
end

-- A job is there again.
local function restore_steps(q, id)
  local entry = redis.call("HGET", q.steps .. id, "aside")
  if not entry then return end
  redis.call("HSET", q.step_jobs, id, entry)
  redis.call("PERSIST", q.steps .. id)
  redis.call("HDEL", q.steps .. id, "aside")
end

-- Forget what these jobs remember. Their entry in `step_jobs` goes last: until then, sending it again goes on.
local function forget_steps(q, ids)
  for i, entry in ipairs(redis.call("HMGET", q.step_jobs, unpack(ids))) do
    if entry then
      redis.call("UNLINK", q.steps .. ids[i])
      redis.call("HDEL", q.step_jobs, ids[i])
    end
  end
end
