-- _due: which of the jobs that are due one call promotes. When more are due than it takes, clients take turns: else the
-- jobs of all others would wait until the crowd of one client is promoted.

local BY_TIME = 4 -- of a crowd, one job in so many goes by its time alone: it may be missing in the index

-- Pick jobs, from one place in a list of id and due to another. One whose record is lost only goes away.
local function pick(q, picked, due, first, last)
  local ids, moments = {}, {}
  for i = 2 * first - 1, 2 * last, 2 do
    if #picked.ids < picked.limit and not picked.has[due[i]] then
      picked.has[due[i]] = true
      picked.ids[#picked.ids + 1], ids[#ids + 1], moments[#moments + 1] = due[i], due[i], due[i + 1]
    end
  end
  for i, record in ipairs(#ids > 0 and redis.call("HMGET", q.jobs, unpack(ids)) or {}) do
    if record then
      local band, client = header(record)
      table.insert(ids_leaving(picked, client), ids[i])
      table.insert(picked.jobs, { ids[i], record, moments[i], band, client })
    else
      picked.has[ids[i]] = "lost"
    end
  end
end

-- What is due, so much of it: ids, and of those with a record also record, due, band and client. Of a crowd a part goes
-- by its time, the rest by turns, and by its time again as far as that is not enough.
local function pick_due(q, limit, now)
  local picked = { limit = limit, ids = {}, has = {}, jobs = {}, clients = {}, leaving = {} }
  local due = redis.call("ZRANGEBYSCORE", q.scheduled, "-inf", now, "WITHSCORES", "LIMIT", 0, limit)
  local is_crowd = #due == 2 * limit
  local by_time = is_crowd and math.ceil(limit / BY_TIME) or #due / 2
  pick(q, picked, due, 1, by_time)
  local by_turns = due_by_turns(q, picked, limit - by_time, is_crowd, now)
  pick(q, picked, by_turns, 1, #by_turns / 2)
  pick(q, picked, due, by_time + 1, #due / 2)
  return picked
end
