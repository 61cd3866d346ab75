-- outcomes: delete jobs, store their outcomes, and notify who waits for them.
-- uses: unique retention steps

local TOKEN_MS = 60000 -- how long a signal is kept, for who blocks on it late

-- These jobs have ended: wake all who wait for them.
local function notify_waiters(q, ids)
  if q.has_rare == false or redis.call("EXISTS", q.waiters) == 0 then return end
  for i, is_awaited in ipairs(redis.call("ZMSCORE", q.waiters, unpack(ids))) do
    if is_awaited then
      redis.call("LPUSH", q.finished_signal .. ids[i], "over")
      redis.call("PEXPIRE", q.finished_signal .. ids[i], TOKEN_MS)
      redis.call("ZREM", q.waiters, ids[i])
    end
  end
end

-- Delete these jobs and everything stored beside them, but not their outcomes. Returns how many there were. `list` and
-- `places`: of their outcomes, see store_outcomes.
local function delete_jobs(q, ids, list, places)
  if #ids == 0 then return 0 end
  local beside = { q.failures, q.crashes, q.errors, q.waiting_since, q.digests, q.progress, q.retrying }
  -- Most jobs have nothing but the record.
  local has_more = q.has_rare ~= false and redis.call("EXISTS", q.cancel_requests, q.step_jobs, unpack(beside)) > 0
  if has_more then release_unique(q, ids) end
  for _, key in ipairs(has_more and beside or {}) do
    redis.call(key == q.retrying and "ZREM" or "HDEL", key, unpack(ids))
  end
  local gone = redis.call("HDEL", q.jobs, unpack(ids))
  if has_more then
    forget_steps(q, ids, list, places) -- behind the record: a job that runs again has its steps
    redis.call("HDEL", q.cancel_requests, unpack(ids)) -- last: after a torn log it still has to stop
  end
  notify_waiters(q, ids)
  return gone
end

-- Keep the lines that these jobs have logged for so long; 0: delete them.
local function expire_logs(q, ids, ms)
  for _, id in ipairs(ids) do redis.call("PEXPIRE", q.log .. id, ms) end
end

-- Store outcomes. `places` are positions in `list`: id, ms to keep, outcome. If there are too many outcomes, those are
-- dropped that finished first, however long they were to be kept. Returns the ids.
local function store_outcomes(q, list, places, most, now)
  local ids, kept, without, texts, k = {}, {}, {}, {}, 0
  local finished_at, keep_ms, times = string.format("%.0f ", now), nil, nil
  for n = 1, #places do
    local i = places[n]
    local id, outcome = list[i], list[i + 2]
    ids[n] = id
    if outcome == "" then
      without[#without + 1] = id
    else
      if list[i + 1] ~= keep_ms then -- mostly the same for all
        keep_ms = list[i + 1]
        times = finished_at .. keep_ms .. " "
      end
      k = k + 1
      kept[k], texts[2 * k - 1], texts[2 * k] = id, id, times .. outcome
    end
  end
  if #without > 0 then redis.call("RPUSH", q.no_outcome, unpack(without)) end
  redis.call("SADD", q.finished, unpack(ids))
  if k > 0 then
    redis.call("RPUSH", q.recent_results, unpack(kept))
    redis.call("HSET", q.results, unpack(texts))
    local over = redis.call("HLEN", q.results) - most
    if over > 0 then drop_oldest_outcomes(q, over + math.floor(most / 100)) end -- not with each job
  end
  return ids
end
