-- settle: runs of a worker that end. A job that was asked to stop does not run again, however its run ends.
-- uses: prelude outcomes

-- Sort a list in which every `step`-th entry is an id: the places of those that the worker holds, and the stale ids.
local function split_held(running, list, step)
  local ids, mine, stale, n, m = {}, {}, {}, 0, 0 -- counted, as neither # nor ipairs is cheap
  for i = 1, #list, step do
    n = n + 1
    ids[n] = list[i]
  end
  local held = n > 0 and redis.call("HMGET", running, unpack(ids))
  for i = 1, n do
    if held[i] then
      m = m + 1
      mine[m] = (i - 1) * step + 1
    else
      stale[#stale + 1] = ids[i]
    end
  end
  return mine, stale
end

-- Settle runs after which nothing follows: `list` is id, ms to keep, outcome text in turn. Answers the stale ids.
local function finish_runs(q, list, most, now, field)
  local mine, stale = split_held(q.running, list, 3)
  if #mine == 0 then return stale, 0 end
  redis.call("DEL", q.scratch) -- lets a full server be drained
  local ids = store_outcomes(q, list, mine, most, now)
  delete_jobs(q, ids)
  count(q.stats, now, field, #ids)
  redis.call("HDEL", q.running, unpack(ids)) -- last: a torn log may cost a second run, not a job
  return stale, #ids
end

-- What stands at these places of a list: the ids.
local function ids_at(list, places)
  local ids = {}
  for n, place in ipairs(places) do ids[n] = list[place] end
  return ids
end

-- Of these jobs, those that were asked to stop are over now. Answers which, as a set.
local function finish_cancelled(q, ids, now)
  local ended = {}
  if #ids == 0 or redis.call("EXISTS", q.cancel_requests) == 0 then return ended end
  for i, wish in ipairs(redis.call("HMGET", q.cancel_requests, unpack(ids))) do
    if wish then
      local keep_ms, most, outcome = string.match(wish, "^%a+ (%d+) (%d+) (.*)$")
      if redis.call("HEXISTS", q.jobs, ids[i]) == 1 then -- else it is over, and the log was torn
        store_outcomes(q, { ids[i], keep_ms, outcome }, { 1 }, tonumber(most), now)
        count(q.stats, now, "cancelled", 1)
        ended[ids[i]] = true
      end
      delete_jobs(q, { ids[i] })
    end
  end
  return ended
end
