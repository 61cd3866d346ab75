-- _reclaiming: taking jobs back from a worker that is dead.

-- A worker is gone, and its jobs are taken back.
local function forget_worker(q, worker)
  redis.call("ZREM", q.workers, worker)
  redis.call("ZREM", q.holders, worker) -- last: until then an audit would find what it holds
end

-- Take back some of a worker's jobs, the last claimed first, so that the first one ends up in front.
-- `is_guilty(id)` says which were running. Adds to `answer` {id, "queued", "dead" or "cancelled"} pairs.
-- Answers how many are left.
local function take_back(q, worker, is_guilty, limit, now, answer)
  local running = q.running .. worker
  local ids = redis.call("HKEYS", running)
  table.sort(ids, function(a, b) return a > b end) -- ids are sorted by the time they were made
  local left = math.max(0, #ids - limit)
  for i = #ids, limit + 1, -1 do ids[i] = nil end
  local ended = end_stopped(q, ids, now)
  for _, id in ipairs(ids) do
    local record = redis.call("HGET", q.jobs, id)
    if ended[id] then
      answer[#answer + 1], answer[#answer + 2] = id, "cancelled"
    elseif record then
      local has_run = is_guilty(id)
      local is_dead = has_run and crash(q, id, record, worker, now)
      if not is_dead then give_back(q, id, record, now, not has_run) end
      answer[#answer + 1], answer[#answer + 2] = id, is_dead and "dead" or "queued"
      count(q.stats, now, "reclaimed", 1)
    end
    redis.call("HDEL", running, id) -- last: a torn log may cost a second run, not a job
  end
  return left
end
