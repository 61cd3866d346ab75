-- running_list: list running jobs.
-- uses: prelude

-- List up to `most` running jobs, the oldest first, behind `at`: {claim time, id}. Returns "more" or "all", the place of
-- each, and {worker, end of its lease, attempt and claim time, cancel request, progress, now} of each.
local function list_held(q, at, most)
  local held, places, known = {}, {}, {}
  local workers = redis.call("ZRANGE", q.workers, 0, -1, "WITHSCORES")
  for w = 1, #workers, 2 do
    local running = redis.call("HGETALL", q.running_of .. workers[w])
    for i = 1, #running, 2 do
      local claimed = tonumber(string.match(running[i + 1], "^%d+ (%d+)") or 0)
      local last = tonumber(at[1] or -1)
      local is_behind = claimed > last or (claimed == last and running[i] > at[2])
      if is_behind then held[#held + 1] = { claimed, running[i], workers[w], workers[w + 1], running[i + 1] } end
    end
  end
  table.sort(held, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  local now = now_ms(q.clock)
  for n = 1, math.min(#held, most) do
    local claimed, id, worker, lease, run = unpack(held[n])
    local request, progress = redis.call("HGET", q.cancel_requests, id), redis.call("HGET", q.progress, id)
    places[n] = { string.format("%.0f", claimed), id }
    known[n] = { worker, lease, run, request or "", progress or "", string.format("%.0f", now) }
  end
  return #held > most and "more" or "all", places, known
end
