-- _stopping: jobs that run and were asked to stop. However their run ends, they do not run again.

-- What stands at these places of a list: the ids.
local function ids_at(list, places)
  local ids = {}
  for n, place in ipairs(places) do ids[n] = list[place] end
  return ids
end

-- Of these jobs, those that were asked to stop are over now. Answers which, as a set.
local function end_stopped(q, ids, now)
  local ended = {}
  if #ids == 0 or redis.call("EXISTS", q.stopping) == 0 then return ended end
  for i, wish in ipairs(redis.call("HMGET", q.stopping, unpack(ids))) do
    if wish then
      local keep_ms, most, outcome = string.match(wish, "^%a+ (%d+) (%d+) (.*)$")
      if redis.call("HEXISTS", q.jobs, ids[i]) == 1 then -- else it is over, and the log was torn
        remember(q, { ids[i], keep_ms, outcome }, { 1 }, tonumber(most), now)
        count(q.stats, now, "cancelled", 1)
        ended[ids[i]] = true
      end
      forget(q, { ids[i] })
    end
  end
  return ended
end
