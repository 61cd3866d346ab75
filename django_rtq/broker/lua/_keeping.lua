-- _keeping: what is kept of jobs that are over. An id outlives its outcome: see TOMBSTONE_MS.

-- An id that is sent again is known for so long after the end of its job, whatever else is forgotten. The number of
-- ids bounds memory only: it is far above what two minutes bring.
local TOMBSTONE_MS, MOST_IDS, AT_ONCE = 120000, 1000000, 1000

-- Drop the outcomes of these jobs. `finished_at` says of those that have one when they finished: an id stays until two
-- minutes after that. Its moment has half a ms then, which tells it from the id of a job that had no outcome.
local function drop_outcomes(q, ids, finished_at, now)
  local going, staying = {}, {}
  for i, id in ipairs(ids) do
    local last = (finished_at[i] or 0) + TOMBSTONE_MS
    if last > now then
      staying[#staying + 1], staying[#staying + 2] = string.format("%.1f", last + 0.5), id
    else
      going[#going + 1] = id
    end
  end
  if #staying > 0 then redis.call("ZADD", q.finished, unpack(staying)) end
  redis.call("HDEL", q.results, unpack(ids))
  redis.call("ZREM", q.kept, unpack(ids))
  if #going > 0 then redis.call("ZREM", q.finished, unpack(going)) end
end

-- Keep ids and outcomes. `finished` is moment and id in turn, `outcomes` id and text. Of too many outcomes those go
-- that are the oldest: by when they finished, not by how long they were to be kept.
local function remember(q, finished, outcomes, most, now)
  redis.call("ZADD", q.finished, unpack(finished))
  if #outcomes > 0 then
    local kept = {}
    for i = 1, #outcomes, 2 do kept[i], kept[i + 1] = now, outcomes[i] end
    redis.call("ZADD", q.kept, unpack(kept))
    redis.call("HSET", q.results, unpack(outcomes))
    local over, ids, moments = math.min(redis.call("ZCARD", q.kept) - most, AT_ONCE), {}, {}
    local oldest = over > 0 and redis.call("ZRANGE", q.kept, 0, over - 1, "WITHSCORES") or {}
    for i = 1, #oldest, 2 do ids[#ids + 1], moments[#moments + 1] = oldest[i], oldest[i + 1] end
    if over > 0 then drop_outcomes(q, ids, moments, now) end
  end
  local over = math.min(redis.call("ZCARD", q.finished) - MOST_IDS, AT_ONCE)
  if over > 0 then drop_outcomes(q, redis.call("ZRANGE", q.finished, 0, over - 1), {}, now) end
end
