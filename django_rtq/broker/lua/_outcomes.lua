-- _outcomes: jobs that are over: what is kept of them, and what is not.

-- Leave nothing of these jobs but what is kept as their outcome. Answers how many there were.
local function forget(q, ids)
  if #ids == 0 then return 0 end
  local beside = { q.failures, q.crashes, q.errors, q.since, q.digests, q.progress, q.retrying }
  local has_more = redis.call("EXISTS", q.stopping, unpack(beside)) > 0 -- of most jobs there is but the record
  if has_more then let_go(q, ids) end
  for _, key in ipairs(has_more and beside or {}) do
    redis.call(key == q.retrying and "ZREM" or "HDEL", key, unpack(ids))
  end
  local gone = redis.call("HDEL", q.jobs, unpack(ids))
  if has_more then redis.call("HDEL", q.stopping, unpack(ids)) end -- last: after a torn log it is still to stop
  tell_waiting(q, ids)
  return gone
end

-- Keep what stands at these places of a list: id, ms to keep, outcome text. Of too many outcomes those go that are the
-- oldest: by when they finished, not by how long they were to be kept. Answers the ids.
local function remember(q, list, places, most, now)
  local ids, finished, kept, results, forgotten_at, k = {}, {}, {}, {}, {}, 0
  local finished_at, looked_at = string.format("%.0f", now), look_again_at(now + TOMBSTONE_MS)
  for n = 1, #places do
    local i = places[n]
    local id, keep_ms, outcome, at = list[i], list[i + 1], list[i + 2], looked_at
    if outcome == "" then -- the ms are mostly the same
      forgotten_at[keep_ms] = forgotten_at[keep_ms] or string.format("%.0f", now + keep_ms)
      at = forgotten_at[keep_ms]
    else
      kept[k + 1] = finished_at
      results[k + 1] = id
      k = k + 2
      kept[k] = id
      results[k] = keep_ms .. " " .. outcome
    end
    ids[n] = id
    finished[2 * n - 1] = at
    finished[2 * n] = id
  end
  redis.call("ZADD", q.finished, unpack(finished))
  if k > 0 then
    redis.call("ZADD", q.kept, unpack(kept))
    redis.call("HSET", q.results, unpack(results))
    local over = math.min(redis.call("ZCARD", q.kept) - most, AT_ONCE)
    if over > 0 then drop_oldest(q, over, now) end
  end
  bound_ids(q)
  return ids
end

-- Settle runs after which nothing follows: `list` is id, ms to keep, outcome text in turn. Answers the stale ids.
local function end_runs(q, list, most, now, field)
  local mine, stale = held_by(q.running, list, 3)
  if #mine == 0 then return stale, 0 end
  redis.call("DEL", q.scratch) -- lets a full server be drained
  local ids = remember(q, list, mine, most, now)
  forget(q, ids)
  count(q.stats, now, field, #ids)
  redis.call("HDEL", q.running, unpack(ids)) -- last: a torn log may cost a second run, not a job
  return stale, #ids
end
