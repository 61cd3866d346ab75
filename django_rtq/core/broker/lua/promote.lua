-- promote: move due jobs into their lanes. If there are more than fit into one call, clients take turns.
-- uses: prelude lanes blocking rates held_jobs task_pauses
-- ARGV[1] limit       jobs, and clients, in this call, at most 100
-- ARGV[2] ahead       "1" where they go ahead of their band's other work, else ""
--
-- returns {ms until the next job or client is due, 0 if held jobs went back, or -1, id, ...}: what was promoted
-- sent twice: goes on where the first call stopped

local q, limit, is_ahead = named(), tonumber(ARGV[1]), ARGV[2] == "1"
local now, answer = now_ms(q.clock), { -1 }
local BY_TIME = 4 -- one job in so many is picked by its time alone: it may be missing in the index
local picked = {
  ids = {}, has = {}, -- what leaves `scheduled`
  lanes = {}, since = {}, fresh = {}, -- where it goes to
  clients = {}, leaving = {}, -- clients, and the ids that leave their indexes
}

-- Start with a client. Returns the ids to remove from its index.
local function visit_client(client)
  if not picked.leaving[client] then
    picked.leaving[client] = {}
    picked.clients[#picked.clients + 1] = client
  end
  return picked.leaving[client]
end

-- Returns id and due of the jobs that the next clients have, an equal share of each. What is not scheduled any more, or only for
-- later, is removed from the index.
local function due_by_turns(wanted)
  local clients = redis.call("ZRANGEBYSCORE", q.scheduled_by_client, "-inf", now, "LIMIT", 0, wanted)
  local share, due, ids, owners = math.ceil(wanted / math.max(#clients, 1)), {}, {}, {}
  for _, client in ipairs(clients) do
    if #ids >= wanted then break end
    local leaving = visit_client(client)
    local known = #leaving -- already picked by time: these come first in its index
    local most = share + known
    for _, id in ipairs(redis.call("ZRANGEBYSCORE", q.scheduled_by_client .. ":" .. client, "-inf", now, "LIMIT", 0, most)) do
      if not picked.has[id] then
        ids[#ids + 1], owners[#owners + 1] = id, client
      else
        leaving[#leaving + 1] = id
      end
    end
  end
  for i, moment in ipairs(#ids > 0 and redis.call("ZMSCORE", q.scheduled, unpack(ids)) or {}) do
    if moment and tonumber(moment) <= now then
      due[#due + 1], due[#due + 2] = ids[i], moment
    else
      table.insert(visit_client(owners[i]), ids[i])
    end
  end
  return due
end

-- Assign a picked job to its lane, and to the index that it leaves.
local function assign_lane(id, record, moment)
  local band, client = read_header(record)
  if is_ahead and tonumber(band) then
    -- In its header, so that it returns to this band whenever it is pushed back.
    band, record = band .. "+", string.gsub(record, "^%-?%d+", "%0+", 1)
    picked.fresh[#picked.fresh + 1], picked.fresh[#picked.fresh + 2] = id, record
  end
  local name, lanes, since = band .. ":" .. client, picked.lanes, picked.since
  local lane = lanes[name]
  if not lane then
    lane = { band = band, client = client, since = moment, ids = {} }
    lanes[name], lanes[#lanes + 1] = lane, lane
  end
  lane.ids[#lane.ids + 1] = id
  table.insert(visit_client(client), id)
  since[#since + 1], since[#since + 2] = id, moment
end

-- Pick jobs `first` to `last` of a list of id and due. One whose record is lost is only removed.
local function pick(due, first, last)
  local ids, moments, has, left = {}, {}, picked.has, limit - #picked.ids
  for i = 2 * first - 1, 2 * last, 2 do
    if #ids < left and not has[due[i]] then
      has[due[i]], ids[#ids + 1], moments[#moments + 1] = true, due[i], due[i + 1]
    end
  end
  for i, record in ipairs(#ids > 0 and redis.call("HMGET", q.jobs, unpack(ids)) or {}) do
    picked.ids[#picked.ids + 1] = ids[i]
    if record then assign_lane(ids[i], record, moments[i]) end
  end
end

-- Pick due jobs, up to `limit`. If there are more, a part is picked by time, the rest by turns of the clients, and what
-- is missing then by time again.
local function pick_due()
  local due = redis.call("ZRANGEBYSCORE", q.scheduled, "-inf", now, "WITHSCORES", "LIMIT", 0, limit)
  local has_more_than_limit = #due == 2 * limit
  local by_time = has_more_than_limit and math.ceil(limit / BY_TIME) or #due / 2
  pick(due, 1, by_time)
  -- If nothing was due, go on only to correct clients in the index that seem to have due jobs.
  if not has_more_than_limit and #picked.clients > 0 then return end
  local by_turns = due_by_turns(limit - by_time)
  pick(by_turns, 1, #by_turns / 2)
  pick(due, by_time + 1, #due / 2)
end

pick_due()
redis.call("HSET", q.clock, "promoted", now) -- for people: shows that a scheduler is alive
if #picked.fresh > 0 then redis.call("HSET", q.jobs, unpack(picked.fresh)) end
note_waiting(q, picked.since)
for _, lane in ipairs(picked.lanes) do
  index_lane(q, lane.band, lane.client, lane.since)
  redis.call("RPUSH", q.lane .. lane.band .. ":" .. lane.client, unpack(lane.ids))
end
-- Remove picked jobs from the index. Clients with more due jobs come after all others that have some.
local looks, gone = {}, {}
for _, client in ipairs(picked.clients) do
  local key = q.scheduled_by_client .. ":" .. client
  local ids = picked.leaving[client]
  if #ids > 0 then redis.call("ZREM", key, unpack(ids)) end
  local next_due = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2]
  if next_due then
    looks[#looks + 1], looks[#looks + 2] = math.max(now, next_due), client
  else
    gone[#gone + 1] = client
  end
end
if #looks > 0 then redis.call("ZADD", q.scheduled_by_client, unpack(looks)) end
if #gone > 0 then redis.call("ZREM", q.scheduled_by_client, unpack(gone)) end
if #picked.ids > 0 then
  redis.call("ZREM", q.retrying, unpack(picked.ids))
  redis.call("ZREM", q.scheduled, unpack(picked.ids)) -- last: a torn log may cost second runs, not a job
end
local next_due = redis.call("ZRANGEBYSCORE", q.scheduled, "-inf", "(" .. lowest_held(), "WITHSCORES", "LIMIT", 0, 1)[2]
next_due = tonumber(next_due or math.huge)
if redis.call("EXISTS", q.rate_times, q.next_starts, q.paused) > 0 then
  if return_more(q, limit) then next_due = now end
  next_due = math.min(resume_due(q, limit) or math.huge, next_due)
  remove_past(q, limit)
end
if next_due < math.huge then answer[1] = math.max(0, next_due - now) end
for i = 1, #picked.since, 2 do answer[#answer + 1] = picked.since[i] end
return answer
