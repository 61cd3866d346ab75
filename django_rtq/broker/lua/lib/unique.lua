-- unique: what jobs hold of which no second like them may live, and who comes after them.
--
-- A digest says what is alike. `unique` + digest names the job that holds it. `digests` says of that job, and of dead
-- letters: until when it holds ("done" or "start"), for how many ms at the most, the digest, and its successor, if any:
-- the job that waits in `scheduled` until this one is over.
-- uses: prelude schedule workers

-- Until when, ms, digest and successor ("": none), as they are noted of a job.
local function read_digest(q, id)
  return string.match(redis.call("HGET", q.digests, id) or "", "^(%S+) (%d+) (%S+) ?(.*)$")
end

-- Whether a job waits for the end of another. One whose time came before, or was thrown away, does not any more.
local function is_successor(q, id)
  if not id or id == "" or not redis.call("ZSCORE", q.scheduled, id) then return false end
  return not redis.call("ZSCORE", q.retrying, id) and redis.call("HEXISTS", q.jobs, id) == 1
end

-- A job holds a digest now, for so many ms at the most.
local function acquire_unique(q, id, digest, ms)
  redis.call("SET", q.unique .. digest, id, "PX", string.format("%.0f", ms))
end

-- These jobs are over, or dead. What they held goes to their successors, whose time has come, or is free.
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

-- The job that holds a digest, and its successor; nil when none does. What is over or dead holds nothing, whatever a torn
-- log left, and neither does what was to hold until it starts, and has: so a claim need not know of digests.
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
