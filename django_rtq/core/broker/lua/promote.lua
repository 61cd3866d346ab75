-- promote: move due jobs into their lanes. If there are more than fit into one call, clients take turns. Lets clients go
-- on that waited for their rate, and gives back held jobs of tasks that were resumed.
-- scheduled, retrying -> queued
-- uses: prelude lanes promote blocking rates held_jobs task_pauses
-- ARGV[1] limit       jobs, and clients, in this call, at most 100
-- ARGV[2] ahead       "1" where they go ahead of their band's other work, else ""
--
-- returns {ms until the next job or client is due, 0 if held jobs went back, or -1, id, ...}: what was promoted
-- sent twice: goes on where the first call stopped

local q, limit, is_ahead = named(), tonumber(ARGV[1]), ARGV[2] == "1"
local now, answer = now_ms(q.clock), { -1 }
local BY_TIME = 4 -- one job in so many is picked by its time alone: it may be missing in the index
local picked = {
  is_ahead = is_ahead, ids = {}, has = {}, -- what leaves `scheduled`
  lanes = {}, since = {}, fresh = {}, -- where it goes to
  clients = {}, leaving = {}, -- clients, and the ids that leave their indexes
}

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
    if record then assign_lane(picked, ids[i], record, moments[i]) end
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
  local by_turns = due_by_turns(q, picked, limit - by_time, due, now)
  pick(by_turns, 1, #by_turns / 2)
  pick(due, by_time + 1, #due / 2)
end

-- Remove picked jobs from the index. Clients with more due jobs come after all others that have some.
local function update_index()
  local looks, gone = {}, {}
  for _, client in ipairs(picked.clients) do
    local key = q.scheduled_by_client .. ":" .. client
    for _, ids in ipairs(picked.leaving[client]) do redis.call("ZREM", key, unpack(ids)) end
    local next_due = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2]
    if next_due then
      looks[#looks + 1], looks[#looks + 2] = math.max(now, next_due), client
    else
      gone[#gone + 1] = client
    end
  end
  if #looks > 0 then redis.call("ZADD", q.scheduled_by_client, unpack(looks)) end
  if #gone > 0 then redis.call("ZREM", q.scheduled_by_client, unpack(gone)) end
end

pick_due()
redis.call("DEL", q.scratch) -- lets a full server be drained
redis.call("HSET", q.clock, "promoted", now) -- for people: shows that a scheduler is alive
if #picked.fresh > 0 then redis.call("HSET", q.jobs, unpack(picked.fresh)) end
note_waiting(q, picked.since)
for _, lane in ipairs(picked.lanes) do
  index_lane(q, lane.band, lane.client, lane.since)
  redis.call("RPUSH", q.lane .. lane.band .. ":" .. lane.client, unpack(lane.ids))
end
update_index()
if #picked.ids > 0 then
  redis.call("ZREM", q.retrying, unpack(picked.ids))
  redis.call("ZREM", q.scheduled, unpack(picked.ids)) -- last: a torn log may cost second runs, not a job
end
local next_due = redis.call("ZRANGEBYSCORE", q.scheduled, "-inf", "(" .. lowest_held(), "WITHSCORES", "LIMIT", 0, 1)[2]
local goes_on = false
if redis.call("EXISTS", q.rate_times, q.next_starts, q.paused) > 0 then
  goes_on = return_more(q, limit)
  next_due = math.min(resume_due(q, limit) or math.huge, next_due or math.huge)
  remove_past(q, limit)
end
if next_due and next_due ~= math.huge then answer[1] = math.max(0, next_due - now) end
if goes_on then answer[1] = 0 end
for i = 1, #picked.since, 2 do answer[#answer + 1] = picked.since[i] end
return answer
