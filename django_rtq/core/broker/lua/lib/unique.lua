-- unique: locks of unique jobs, and the jobs that run after their owners.
--
-- A digest is equal for calls that are alike, and its owner the job that holds it: until it is "done", or until its "start". The
-- successor waits in `scheduled` for the end of the owner.
-- created when first called
-- uses: prelude schedule runners

-- Returns until when, ms, digest and successor ("": none) of a job.
local function read_digest(q, id)
  return string.match(redis.call("HGET", q.digests, id) or "", "^(%S+) (%d+) (%S+) ?(.*)$")
end

-- Whether a job waits for the end of another. Not any more if it was promoted before, or deleted.
local function is_successor(q, id)
  if not id or id == "" or not redis.call("ZSCORE", q.scheduled, id) then return false end
  return not redis.call("ZSCORE", q.retrying, id) and redis.call("HEXISTS", q.jobs, id) == 1
end

-- Make a job the owner of a digest, for at most so many ms.
local function acquire_unique(q, id, digest, ms)
  redis.call("SET", q.unique .. digest, id, "PX", string.format("%.0f", ms))
end

-- These jobs are finished or dead: pass their digests to their successors, which are due now, or free them.
local function release_unique(q, ids)
  if redis.call("EXISTS", q.digests) == 0 then return end
  local gone = {}
  for _, id in ipairs(ids) do gone[id] = true end
  for _, id in ipairs(ids) do
    local span, ms, digest, successor = read_digest(q, id)
    local owner = span and redis.call("GET", q.unique .. digest)
    if not gone[successor] and is_successor(q, successor) then
      if owner == id or not owner then acquire_unique(q, successor, digest, ms) end
      local record = redis.call("HGET", q.jobs, successor)
      local _, client = read_header(record)
      schedule(q, client, tonumber(string.match(record, "^%S+ %S+ (%d+)") or 0), successor)
    elseif owner == id then
      redis.call("DEL", q.unique .. digest)
    end
  end
end

-- Returns the owner of a digest, and its successor; nil if there is none. A finished or dead job is no owner, whatever a
-- torn log left; nor is a job that was to hold it until its start, once it has started: so claim ignores digests.
local function unique_owner(q, digest)
  local id = redis.call("GET", q.unique .. digest)
  if not id or redis.call("HEXISTS", q.jobs, id) == 0 or redis.call("ZSCORE", q.dead, id) then return nil end
  local span, _, _, successor = read_digest(q, id)
  if span == "start" then
    local has_failed = redis.call("HEXISTS", q.failures, id) == 1 or redis.call("HEXISTS", q.crashes, id) == 1
    if has_failed or find_runner(q, id) then return nil end
  end
  return id, is_successor(q, successor) and successor or nil
end
