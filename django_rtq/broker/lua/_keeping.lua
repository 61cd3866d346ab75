-- _keeping: what is kept of jobs that are over. An id outlives its outcome: see TOMBSTONE_MS.

-- An id that is sent again is known for so long after the end of its job, whatever else is forgotten. The number of
-- ids bounds memory only: it is far above what two minutes bring.
local TOMBSTONE_MS, MOST_IDS, AT_ONCE = 120000, 1000000, 1000

-- Until when the ids of jobs that finished at a moment are known. Half a ms more tells them from ids of jobs that had
-- no outcome. nil: no longer.
local function known_until(finished_at, now)
  if finished_at + TOMBSTONE_MS > now then return string.format("%.1f", finished_at + TOMBSTONE_MS + 0.5) end
end

-- Drop the outcomes of these jobs, and their ids too unless they are to be known until some moment. `kept` is seen to by
-- who calls this: where the oldest go, they go by rank, which costs a third.
local function drop_outcomes(q, ids, last)
  local staying = {}
  for i = 1, last and #ids or 0 do staying[2 * i - 1], staying[2 * i] = last, ids[i] end
  if last then redis.call("ZADD", q.finished, unpack(staying)) end
  redis.call("HDEL", q.results, unpack(ids))
  if not last then redis.call("ZREM", q.finished, unpack(ids)) end
end

-- Keep ids and outcomes. `finished` is moment and id in turn, `outcomes` id and text. Of too many outcomes those go
-- that are the oldest: by when they finished, not by how long they were to be kept.
local function remember(q, finished, outcomes, most, now)
  redis.call("ZADD", q.finished, unpack(finished))
  if #outcomes > 0 then
    local kept, text = {}, string.format("%.0f", now)
    for i = 1, #outcomes, 2 do kept[i], kept[i + 1] = text, outcomes[i] end
    redis.call("ZADD", q.kept, unpack(kept))
    redis.call("HSET", q.results, unpack(outcomes))
    local over = math.min(redis.call("ZCARD", q.kept) - most, AT_ONCE)
    if over > 0 then
      local youngest = redis.call("ZRANGE", q.kept, over - 1, over - 1, "WITHSCORES")[2]
      drop_outcomes(q, redis.call("ZRANGE", q.kept, 0, over - 1), known_until(youngest, now))
      redis.call("ZREMRANGEBYRANK", q.kept, 0, over - 1)
    end
  end
  local over = math.min(redis.call("ZCARD", q.finished) - MOST_IDS, AT_ONCE)
  if over > 0 then
    local ids = redis.call("ZRANGE", q.finished, 0, over - 1)
    redis.call("ZREM", q.kept, unpack(ids))
    drop_outcomes(q, ids)
  end
end
