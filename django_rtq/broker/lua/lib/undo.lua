-- undo: set jobs aside before they are deleted, so that a person can undo that for a while: see restore.
--
-- `undo` + token is a list with TEXTS texts for each job: where it was, its id, its record, what lay beside it, and the sum of
-- their lengths. `undos` says how many bytes each list has. If they are too much, it says -1, and the list has one empty text.
-- created when first called

local TEXTS = 10
local COPIED_JOBS, COPIED_BYTES = 50, 200000 -- in one call: Redis serves nobody else meanwhile

local function beside_keys(q)
  return { q.failures, q.crashes, q.errors, q.waiting_since, q.digests, q.progress }
end

-- How long the lines are kept that a job has logged: as long as the job is set aside.
local function log_ms(undo)
  return undo == "" and 0 or string.match(undo, "^%S+ (%d+)")
end

-- Keep a key for so long at least. An undo that has begun keeps its list for longer than an action.
local function keep_for(key, ms)
  if redis.call("PTTL", key) < tonumber(ms) then redis.call("PEXPIRE", key, ms) end
end

-- How many of these jobs are copied in one call: one at least.
local function count_copied(q, ids)
  local bytes = 0
  for i, id in ipairs(ids) do
    bytes = bytes + redis.call("HSTRLEN", q.jobs, id) + redis.call("HSTRLEN", q.errors, id)
    if i > 1 and bytes > COPIED_BYTES or i > COPIED_JOBS then return i - 1 end
  end
  return #ids
end

-- The parts of these jobs, as far as they have a record, and the sum of their lengths.
local function read_parts(q, ids, places)
  local records, columns, parts, bytes = redis.call("HMGET", q.jobs, unpack(ids)), {}, {}, 0
  for n, key in ipairs(beside_keys(q)) do columns[n] = redis.call("HMGET", key, unpack(ids)) end
  for i, id in ipairs(ids) do
    local of_job, size = { places[i], id, records[i] or "" }, 0
    for _, column in ipairs(columns) do of_job[#of_job + 1] = column[i] or "" end
    for _, part in ipairs(records[i] and of_job or {}) do
      parts[#parts + 1], size = part, size + #part
    end
    if records[i] then parts[#parts + 1], bytes = size, bytes + size end
  end
  return parts, bytes
end

-- How many jobs and bytes are set aside. Forgets lists that have expired.
local function count_aside(q)
  local found, gone, jobs, bytes = redis.call("HGETALL", q.undos), {}, 0, 0
  for i = 1, #found, 2 do
    local list = q.undo .. string.match(found[i], "^%S+")
    local size, is_list = redis.call("LLEN", list), not string.find(found[i], " ", 1, true)
    if size == 0 then gone[#gone + 1] = found[i] end
    if size > 0 and is_list and found[i + 1] ~= "-1" then jobs, bytes = jobs + size / TEXTS, bytes + found[i + 1] end
  end
  if #gone > 0 then redis.call("HDEL", q.undos, unpack(gone)) end
  return jobs, bytes
end

-- Set jobs aside. `undo` is the token, for how long they are kept (ms), and how many jobs and bytes the queue may set aside:
-- if they are more, this undo is given up, with all of its jobs. `places` says where each job is.
local function set_aside(q, undo, ids, places)
  local token, keep_ms, most_jobs, most_bytes = string.match(undo, "^(%S+) (%d+) (%d+) (%d+)$")
  local list, is_given_up = q.undo .. token, redis.call("HGET", q.undos, token) == "-1"
  local parts, bytes = {}, 0
  if not is_given_up then parts, bytes = read_parts(q, ids, places) end
  if #parts == 0 and not is_given_up then return end
  local jobs_aside, bytes_aside = count_aside(q)
  if jobs_aside + #parts / TEXTS > tonumber(most_jobs) or bytes_aside + bytes > tonumber(most_bytes) then
    redis.call("HSET", q.undos, token, "-1")
    redis.call("UNLINK", list)
    redis.call("RPUSH", list, "")
  elseif not is_given_up then
    redis.call("HINCRBY", q.undos, token, bytes)
    redis.call("RPUSH", list, unpack(parts))
  end
  keep_for(list, keep_ms)
  keep_for(q.undos, keep_ms)
end
