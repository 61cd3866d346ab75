-- recount: count the jobs in the processing lists, after the first limit, or a torn log.
-- uses: prelude rates limits running_counts used_times

-- Write `running_counts` anew. Jobs that were claimed without limits get their client written behind their entry.
local function recount(q)
  local owners, total, claims = {}, 0, {}
  for _, worker in ipairs(redis.call("ZRANGE", q.signed_on, 0, -1)) do
    local held = redis.call("HGETALL", q.running_of .. worker)
    for i = 1, #held, 2 do
      local client = owner_of(held[i + 1])
      if not client then
        client = select(2, read_header(redis.call("HGET", q.jobs, held[i]) or ""))
        redis.call("HSET", q.running_of .. worker, held[i], held[i + 1] .. " " .. client)
      end
      add_job(owners, client)
      claims[client] = claims[client] or {}
      table.insert(claims[client], tonumber(string.match(held[i + 1], "^%d+ (%d+)")))
      total = total + 1
    end
  end
  redis.call("DEL", q.running_counts)
  q.counted = nil
  if total > 0 then add_running(q, owners, members_of(owners), total, 1) end
  if has_time_turns(values_of(redis.call("HGET", q.limits, "queue"))) then
    q.now = q.now or now_ms(q.clock)
    recount_used(q, owners, claims)
  end
end
