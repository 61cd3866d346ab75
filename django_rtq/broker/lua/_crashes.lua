-- _crashes: runs that took their worker down.

-- Count such a run for its queue and its task: the worker that would have done so is dead.
local function count_crash(q, record, end_name, now)
  count(q.stats, now, "failed", 1)
  local task = string.match(record, '^[^\n]*\n{"task":"([^"\\]+)"')
  if not task then return end
  local tasks = tasks_now(q, now)
  for _, name in ipairs({ "failed " .. task, end_name .. " " .. task }) do
    if has_room(tasks, name) then redis.call("HINCRBY", tasks, name, 1) end
  end
  redis.call("EXPIRE", tasks, TASKS_SECONDS)
end

-- A run took its worker down: count it, and say whether that was once too often. Then the job is dead.
local function crash(q, id, record, worker, now)
  local _, _, max_crashes = header(record)
  local crashes = redis.call("HINCRBY", q.crashes, id, 1)
  local attempt = crashes + tonumber(redis.call("HGET", q.failures, id) or 0)
  local line = string.format(
    '{"at":%.0f,"attempt":%d,"worker":"%s","error_class":"django_rtq.exceptions.WorkerLost",'
      .. '"error":"The worker died while it ran this job: crash %d, %d allowed.","traceback":""}',
    now, attempt, worker, crashes, max_crashes)
  note_error(q.errors, id, line)
  local is_dead = crashes > max_crashes
  count_crash(q, record, is_dead and "dead" or "retried", now)
  if not is_dead then return false end
  redis.call("ZADD", q.dead, now, id)
  tell_waiting(q, { id })
  let_go(q, { id })
  count(q.stats, now, "dead", 1)
  return true
end
