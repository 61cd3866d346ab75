-- list_running: the running jobs of a queue, by worker. Reads only.
-- uses: prelude
-- ARGV[1] most        jobs, at most 2,000; the others are only counted
-- ARGV[2] bytes       how much to return of each record; 0: records are not read
--
-- returns {now, {worker, ms left of its lease, jobs, {id, attempt and claim time, start of the record, cancel
--         request, progress}, ...}, ...}

local q, most, bytes = named(), tonumber(ARGV[1]), tonumber(ARGV[2])
local now = now_ms(q.clock)
local answer, has_more = { now }, redis.call("EXISTS", q.cancel_requests, q.progress) > 0

local workers = redis.call("ZRANGE", q.workers, 0, -1, "WITHSCORES")
for w = 1, #workers, 2 do
  local running = q.running_of .. workers[w]
  local held = most > 0 and redis.call("HGETALL", running)
  local entry = { workers[w], workers[w + 1] - now, held and #held / 2 or redis.call("HLEN", running) }
  held = held or {}
  for i = 1, math.min(#held, 2 * most), 2 do
    local record = bytes > 0 and redis.call("HGET", q.jobs, held[i]) or ""
    local request = has_more and redis.call("HGET", q.cancel_requests, held[i]) or ""
    local progress = has_more and redis.call("HGET", q.progress, held[i]) or ""
    entry[#entry + 1] = { held[i], held[i + 1], string.sub(record, 1, bytes), request, progress }
  end
  most = most - (#entry - 3)
  answer[#answer + 1] = entry
end
return answer
