-- restore: put back jobs that an undo has set aside.
-- uses: prelude lanes schedule unique undo known_ids task_pauses members steps

local RESTORED_BYTES = 200000 -- in one call: Redis serves nobody else meanwhile

-- The last jobs of a list, the last one first, as many as are put back in one call: the texts of each, and the sum of their
-- lengths.
local function read_last(q, list, limit)
  local jobs, bytes, texts = {}, 0, #beside_keys(q) + 4
  while #jobs < limit do
    local size = redis.call("LINDEX", list, -1 - #jobs * texts)
    if not size or (#jobs > 0 and bytes + size > RESTORED_BYTES) then break end
    bytes = bytes + size
    jobs[#jobs + 1] = redis.call("LRANGE", list, -texts - #jobs * texts, -1 - #jobs * texts)
  end
  return jobs, bytes
end

-- Take the digest of a waiting job again, as far as it held one. Returns until when it waits at the latest, or nothing if
-- another job has the digest. A successor waits for the end of the owner that still names it.
local function retake_digest(q, parts, due)
  local id, note, ready = parts[2], parts[8], tonumber(string.match(parts[3], "^%S+ %S+ (%d+)") or 0)
  local span, ms, digest = string.match(note, "^(%S+) (%d+) (%S+)")
  if not span or (span == "start" and parts[4] .. parts[5] ~= "") then return due end
  local owner = unique_owner(q, digest)
  if owner then return select(4, read_digest(q, owner)) == id and due or nil end
  acquire_unique(q, id, digest, ms)
  return string.find(parts[1], "^scheduled") and math.min(due, ready) or due
end

-- Put a waiting job to the front of its lane, or let it wait for its time. What a pause held goes back to its lane: claims hold
-- it again if the task is still paused. Returns whether it may be there.
local function restore_waiting(q, parts, state, due, now)
  local id, record, is_held = parts[2], parts[3], due >= tonumber(lowest_held())
  if is_held then parts[7] = string.format("%.0f", held_since(due)) end
  due = retake_digest(q, parts, due)
  if not due then return false end
  if state == "lane" or is_held then
    if parts[7] ~= "" then redis.call("HSET", q.waiting_since, id, parts[7]) end
    push_front(q, id, record, now)
  else
    local _, client = read_header(record)
    schedule(q, client, due, id)
    if state == "retrying" then redis.call("ZADD", q.retrying, due, id) end
  end
  return true
end

-- Write what lay beside a job.
local function put_beside(q, parts)
  for n, key in ipairs(beside_keys(q)) do
    if parts[n + 3] ~= "" then redis.call("HSET", key, parts[2], parts[n + 3]) end
  end
end

-- Put a job back where it was, unless it is there, or has been since. Returns its id, or nothing if it may not be there. The
-- record comes after its place: a torn log leaves an id without a record, and another call restores the job. What lies beside
-- it comes before only if it is dead: nobody drops an id from there, and leaves the rest.
local function restore_job(q, parts, now)
  local id, record, state, at = parts[2], parts[3], string.match(parts[1], "^(%l+) (%S+)$")
  if not state then return nil end
  if redis.call("HEXISTS", q.jobs, id) == 1 or is_finished(q, id) then return id end
  if state == "dead" then
    note_members(q, { id }, "dead")
    redis.call("ZADD", q.dead, at, id)
    put_beside(q, parts)
    restore_steps(q, id)
    redis.call("HSET", q.jobs, id, record)
  elseif restore_waiting(q, parts, state, tonumber(at), now) then
    note_members(q, { id }, "open")
    restore_steps(q, id)
    redis.call("HSET", q.jobs, id, record)
    put_beside(q, parts)
  else
    return nil
  end
  return id
end
