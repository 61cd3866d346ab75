-- reclaim: take jobs back from a dead worker, and count the runs that crashed.
-- uses: prelude lanes unique outcomes settle failures metrics running_counts members

-- Count a crash of a job. Returns true if it was one too many: then the job is dead.
local function record_crash(q, id, record, worker, now)
  local _, _, max_crashes = read_header(record)
  local crashes = redis.call("HINCRBY", q.crashes, id, 1)
  local attempt = crashes + tonumber(redis.call("HGET", q.failures, id) or 0)
  local line = string.format(
    '{"at":%.0f,"attempt":%d,"worker":"%s","error_class":"django_rtq.exceptions.WorkerLost",'
      .. '"error":"The worker died while it ran this job: crash %d, %d allowed.","traceback":""}',
    now, attempt, worker, crashes, max_crashes)
  add_error(q.errors, id, line)
  local is_dead = crashes > max_crashes
  count(q.stats, now, "failed", 1)
  count(q.stats, now, "crashed", 1)
  count_task_crash(q, record, is_dead and "dead" or "retried", now)
  if not is_dead then return false end
  note_members(q, { id }, "dead")
  redis.call("ZADD", q.dead, now, id)
  notify_waiters(q, { id })
  release_unique(q, { id })
  count(q.stats, now, "dead", 1)
  return true
end

-- Take back some jobs of a worker, the last claimed first, so that the first claimed ends up in front.
-- `is_guilty(id)`: whether it was running. Appends pairs to `answer`: id, and "queued", "dead" or "cancelled".
-- Returns how many jobs are left.
local function reclaim_jobs(q, worker, is_guilty, limit, now, answer)
  local running = q.running_of .. worker
  local all, held, ids, entries = redis.call("HKEYS", running), {}, {}, {}
  table.sort(all) -- ids sort by the time at which they were made
  local left = math.max(0, #all - limit)
  for i = #all, left + 1, -1 do ids[#ids + 1] = all[i] end
  for i, entry in ipairs(#ids > 0 and redis.call("HMGET", running, unpack(ids)) or {}) do held[ids[i]] = entry end
  local ended, is_timed = finish_cancelled(q, ids, now), are_timed(q, { held[ids[1]] })
  for _, id in ipairs(ids) do
    local record = redis.call("HGET", q.jobs, id)
    if ended[id] then
      answer[#answer + 1], answer[#answer + 2] = id, "cancelled"
    elseif record then
      local has_run = is_guilty(id)
      if is_timed and not has_run then held[id] = string.gsub(held[id], "^(%d+ %d+) ", "%1:0 ") end
      local is_dead = has_run and record_crash(q, id, record, worker, now)
      if not is_dead then push_front(q, id, record, now, not has_run and not is_timed) end
      answer[#answer + 1], answer[#answer + 2] = id, is_dead and "dead" or "queued"
      count(q.stats, now, "reclaimed", 1)
    end
    leave(q, running, { id })
    entries[#entries + 1] = held[id]
  end
  count_ended(q, entries)
  return left
end
