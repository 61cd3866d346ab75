-- settle: end runs of a worker. A job with a cancel request does not run again, however its run ends.
-- uses: prelude outcomes running_counts members

-- Split a list in which every `step`-th entry is an id, from `first`, and to `last` if given. Returns the positions of ids
-- that the worker holds, the stale ids, and the entries of the processing list.
local function split_held(running, list, step, first, last)
  local ids, mine, stale, entries, n, m = {}, {}, {}, {}, 0, 0 -- counted: # and ipairs are expensive
  for i = first, last or #list, step do
    n = n + 1
    ids[n] = list[i]
  end
  local held = n > 0 and redis.call("HMGET", running, unpack(ids))
  for i = 1, n do
    if held[i] then
      m = m + 1
      mine[m], entries[m] = first + (i - 1) * step, held[i]
    else
      stale[#stale + 1] = ids[i]
    end
  end
  return mine, stale, entries
end

-- Remove jobs from a processing list, last: a torn log may cost a second run, not a job. `q.runner` is false if it is known
-- that there is no hash of runners.
local function leave(q, running, ids)
  redis.call("HDEL", running, unpack(ids))
  if q.runner ~= false then redis.call("HDEL", q.runners, unpack(ids)) end
end

-- Finish the jobs at these places of a list, which the worker holds: id, ms to keep, outcome.
local function finish_held(q, list, mine, entries, most, now, field)
  if #mine == 0 then return end
  local ids = store_outcomes(q, list, mine, most, now)
  delete_jobs(q, ids, list, mine)
  count(q.stats, now, field, #ids)
  leave(q, q.running, ids)
  if q.has_limits ~= false then count_ended(q, entries) end
end

-- Finish those of these jobs that have a cancel request, as cancelled. Returns them as a set.
local function finish_cancelled(q, ids, now)
  local ended = {}
  if #ids == 0 or redis.call("EXISTS", q.cancel_requests) == 0 then return ended end
  for i, request in ipairs(redis.call("HMGET", q.cancel_requests, unpack(ids))) do
    if request then
      local keep_ms, most, outcome = string.match(request, "^%a+ (%d+) (%d+) (.*)$")
      if redis.call("HEXISTS", q.jobs, ids[i]) == 1 then -- else it is finished, and the log was torn
        store_outcomes(q, { ids[i], keep_ms, outcome }, { 1 }, tonumber(most), now)
        count(q.stats, now, "cancelled", 1)
        ended[ids[i]] = true
      end
      note_members(q, { ids[i] }, "gone")
      delete_jobs(q, { ids[i] })
    end
  end
  return ended
end
