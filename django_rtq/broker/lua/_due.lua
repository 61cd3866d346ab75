-- _due: which of the jobs that are due one call promotes. When more are due than it takes, clients take turns: else the
-- jobs of all others would wait until the crowd of one client is promoted.

local BY_TIME = 4 -- of a crowd, one job in so many goes by its time alone: it may be missing in the index

-- Note in which lane a job goes, and in whose index it was.
local function line_up(picked, id, record, moment)
  local band, client = header(record)
  if picked.is_ahead and tonumber(band) then
    -- In its header, so that it comes back there whoever gives it back.
    band, record = band .. "+", string.gsub(record, "^%-?%d+", "%0+", 1)
    picked.fresh[#picked.fresh + 1], picked.fresh[#picked.fresh + 2] = id, record
  end
  local name, lanes, since = band .. ":" .. client, picked.lanes, picked.since
  local lane = lanes[name]
  if not lane then
    lane = { band = band, client = client, since = moment, ids = {} }
    lanes[name], lanes[#lanes + 1] = lane, lane
    table.insert(look_at(picked, client), lane.ids)
  end
  lane.ids[#lane.ids + 1] = id
  since[#since + 1], since[#since + 2] = id, moment
end

-- Pick jobs, from one place in a list of id and due to another. One whose record is lost only goes away.
local function pick(q, picked, due, first, last)
  local ids, moments, has, left = {}, {}, picked.has, picked.limit - #picked.ids
  for i = 2 * first - 1, 2 * last, 2 do
    if #ids < left and not has[due[i]] then
      has[due[i]], ids[#ids + 1], moments[#moments + 1] = true, due[i], due[i + 1]
    end
  end
  for i, record in ipairs(#ids > 0 and redis.call("HMGET", q.jobs, unpack(ids)) or {}) do
    picked.ids[#picked.ids + 1] = ids[i]
    if record then line_up(picked, ids[i], record, moments[i]) end
  end
end

-- Pick what is due, so much of it. Of a crowd a part goes by its time, the rest by turns, and by its time again as far
-- as that is not enough.
local function pick_due(q, picked, now)
  local limit = picked.limit
  local due = redis.call("ZRANGEBYSCORE", q.scheduled, "-inf", now, "WITHSCORES", "LIMIT", 0, limit)
  local is_crowd = #due == 2 * limit
  local by_time = is_crowd and math.ceil(limit / BY_TIME) or #due / 2
  pick(q, picked, due, 1, by_time)
  -- Where nobody's job was due, whom the index says to look at is put right.
  if not is_crowd and #picked.clients > 0 then return end
  local by_turns = due_by_turns(q, picked, limit - by_time, due, now)
  pick(q, picked, by_turns, 1, #by_turns / 2)
  pick(q, picked, due, by_time + 1, #due / 2)
end
