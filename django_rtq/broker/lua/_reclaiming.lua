-- _reclaiming: taking jobs back from a worker that is dead.

-- Take back some of a worker's jobs, the last claimed first, so that the first one ends up in front.
-- `is_guilty(id)` says which were running. Adds to `answer` {id, "queued", "dead" or "cancelled"} pairs.
-- Answers how many are left.
local function take_back(q, worker, is_guilty, limit, now, answer)
  local running = q.running .. worker
  local held, ids = redis.call("HGETALL", running), {}
  for i = 1, #held, 2 do ids[#ids + 1] = held[i] end
  table.sort(ids, function(a, b) return a > b end) -- ids are sorted by the time they were made
  local left = math.max(0, #ids - limit)
  for i = #ids, limit + 1, -1 do ids[i] = nil end
  local ended = end_stopped(q, ids, now)
  for _, id in ipairs(ids) do
    local record = redis.call("HGET", q.jobs, id)
    if ended[id] then
      answer[#answer + 1], answer[#answer + 2] = id, "cancelled"
    elseif record then
      local is_dead = is_guilty(id) and crash(q, id, record, worker, now)
      if not is_dead then give_back(q, id, record, now) end
      answer[#answer + 1], answer[#answer + 2] = id, is_dead and "dead" or "queued"
      count(q.stats, now, "reclaimed", 1)
    end
    redis.call("HDEL", running, id) -- last: a torn log may cost a second run, not a job
  end
  return left
end
