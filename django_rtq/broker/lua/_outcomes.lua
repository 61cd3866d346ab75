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

-- Settle runs after which nothing follows: `list` is id, ms to keep, outcome text in turn. Answers the stale ids.
local function end_runs(q, list, most, now, field)
  local mine, stale = held_by(q.running, list, 3)
  local ids, finished, outcomes, forgotten_at = {}, {}, {}, {}
  for _, i in ipairs(mine) do
    local keep_ms = list[i + 1] -- mostly the same
    forgotten_at[keep_ms] = forgotten_at[keep_ms] or string.format("%.0f", now + keep_ms)
    ids[#ids + 1] = list[i]
    finished[#finished + 1], finished[#finished + 2] = forgotten_at[keep_ms], list[i]
    if list[i + 2] ~= "" then outcomes[#outcomes + 1], outcomes[#outcomes + 2] = list[i], list[i + 2] end
  end
  if #ids == 0 then return stale, 0 end
  redis.call("DEL", q.scratch) -- lets a full server be drained
  remember(q, finished, outcomes, most, now)
  forget(q, ids)
  count(q.stats, now, field, #ids)
  redis.call("HDEL", q.running, unpack(ids)) -- last: a torn log may cost a second run, not a job
  return stale, #ids
end
