-- workers: leases of workers.
-- uses: prelude

-- Record a sign of life. Returns the time.
-- If nobody renewed for more than half a lease, Redis was away, not the workers: all leases are extended by that time.
-- Then nothing is reclaimed for half a lease (`hold`), so that live workers renew first. If another silence begins before
-- `hold` ends, only the rest of it counts after that: repeated outages must not keep jobs of dead workers for ever.
-- `anchor` is the time in tenths of a ms, and the clock: time continues from it if the clock is put back.
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

-- Delete a worker that holds no jobs any more. Its processing list, which does not exist, by writes: only these are in the
-- log. If Redis executes the beginning of a claim from a torn log, at a later start, it does not stay for ever.
local function delete_worker(q, worker)
  redis.call("HSET", q.running_of .. worker, "-", "1 0")
  redis.call("DEL", q.running_of .. worker)
  redis.call("ZREM", q.workers, worker)
  redis.call("ZREM", q.signed_on, worker) -- last: until then repair_lanes finds what it holds
end
