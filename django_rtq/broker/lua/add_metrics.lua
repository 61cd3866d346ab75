-- add_metrics: add counters of a worker: how runs of tasks ended, and which clients they were for.
-- uses: prelude metrics
-- keys: clock scratch tasks client_runs client_time
-- ARGV[1] counters    how many there are
-- ARGV[...] counted   of each counter: name, number; then of each client: its name, runs, µs
--
-- returns {}
-- sent twice: counts twice

local q, counters, counted = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local SLICE_MS, CLIENTS_SECONDS, ALL = 600000, 4200, "\n"
local now = now_ms(q.clock)
local tasks = task_counters(q, now)
local slice = string.format("%.0f", math.floor(now / SLICE_MS))
local served, busy = q.client_runs .. slice, q.client_time .. slice

redis.call("DEL", q.scratch) -- lets a full server be drained
for i = 1, 2 * counters, 2 do
  if has_room(tasks, counted[i]) then redis.call("HINCRBY", tasks, counted[i], counted[i + 1]) end
end
local all_us = 0
for i = 2 * counters + 1, #counted, 3 do
  local client, runs, us = counted[i], counted[i + 1], counted[i + 2]
  all_us = all_us + us
  if has_room(served, client) then
    redis.call("HINCRBY", served, client, runs)
    redis.call("ZINCRBY", busy, us, client)
  end
end
if #counted > 2 * counters then redis.call("HINCRBY", served, ALL, string.format("%.0f", all_us)) end
redis.call("EXPIRE", tasks, TASKS_SECONDS)
redis.call("EXPIRE", served, CLIENTS_SECONDS)
redis.call("EXPIRE", busy, CLIENTS_SECONDS)
return {}
