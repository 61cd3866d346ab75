-- workers: who is alive, and who runs what.
-- uses: prelude

-- Note that somebody is alive. Answers the time.
-- In a silence of more than half a lease nobody could renew: Redis was away, not the workers. For leases that time has
-- not passed: all of them end later by as much. Then nothing is reclaimed for half a lease, so that those who live come
-- back first. What is left of that half when the next silence begins is all that there is after it, so silences that
-- come again and again do not keep the jobs of the dead.
-- The time in tenths of a ms and the clock are the anchor from which time goes on if the clock is put back.
local function record_contact(q, lease_ms)
  local now, tenths, clock = now_ms(q.clock)
  local sweep = redis.call("HMGET", q.clock, "contact", "hold")
  local last, hold = tonumber(sweep[1] or now), tonumber(sweep[2] or 0)
  local silence = now - last -- below 0: the clock was ahead by hours, and so were the leases
  if silence > lease_ms / 2 or silence < 0 then
    for _, worker in ipairs(redis.call("ZRANGE", q.workers, 0, -1)) do
      redis.call("ZINCRBY", q.workers, silence, worker)
    end
    redis.call("HSET", q.clock, "hold", hold > last and hold + silence or now + math.floor(lease_ms / 2))
  end
  local anchor = string.format("%.0f %.0f", tenths, clock)
  redis.call("HSET", q.clock, "contact", now, "high", tenths - 9 * clock, "anchor", anchor)
  return now
end

-- The worker that has a job, what is written down of the run, and when its lease ends; nil when none has it. If a torn
-- log has given it to two, the one that lives longer.
local function find_runner(q, id)
  local workers = redis.call("ZREVRANGE", q.workers, 0, -1, "WITHSCORES")
  for i = 1, #workers, 2 do
    local held = redis.call("HGET", q.running_of .. workers[i], id)
    if held then return workers[i], held, workers[i + 1] end
  end
end

-- A worker is gone, and its jobs are taken back.
local function delete_worker(q, worker)
  redis.call("ZREM", q.workers, worker)
  redis.call("ZREM", q.signed_on, worker) -- last: until then an audit would find what it holds
end
