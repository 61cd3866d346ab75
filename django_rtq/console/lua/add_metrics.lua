-- add_metrics: add counters of a worker: how runs of tasks ended, how long they took, and which clients they were for.
-- uses: prelude metrics
-- ARGV[1] version     of the project; "": it has none
-- ARGV[2] run_ms      how long the jobs that succeeded ran, together
-- ARGV[3] wait_ms     how long these had waited, together
-- ARGV[4] counters    how many there are
-- ARGV[...] counted   of each counter: name, number; then of each client: its name, runs, µs
--
-- returns {}
-- sent twice: counts twice

local q, version, run_ms, wait_ms, counters = named(), ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local counted = { select(5, unpack(ARGV)) }
local CLIENTS_SECONDS = 4200
local now = now_ms(q.clock)
local tasks = q.tasks .. math.floor(now / HOUR_MS)
local slice = string.format("%.0f", math.floor(now / SLICE_MS))
local served, busy = q.client_runs .. slice, q.client_time .. slice

if run_ms ~= "0" then count(q.stats, now, "run_ms", run_ms) end
if wait_ms ~= "0" then count(q.stats, now, "wait_ms", wait_ms) end
local ended = {} -- task -> kind -> number
for i = 1, 2 * counters, 2 do
  add_counter(tasks, counted[i], counted[i + 1])
  local kind, task = string.match(counted[i], "^(%l+) (.*)$")
  if kind == "done" or kind == "failed" then
    ended[task] = ended[task] or { done = "0", failed = "0" }
    ended[task][kind] = counted[i + 1]
  end
end
for task, runs in pairs(ended) do count_runs(q, now, task, runs.done, runs.failed) end
if version ~= "" and counters > 0 then count_version(q, now, version, counted, 2 * counters) end
local all_runs, all_us = 0, 0
for i = 2 * counters + 1, #counted, 3 do
  local client, runs, us = counted[i], counted[i + 1], counted[i + 2]
  all_runs, all_us = all_runs + runs, all_us + us
  if has_room(served, client) then
    redis.call("HINCRBY", served, client, runs)
    redis.call("ZINCRBY", busy, us, client)
  end
end
if #counted > 2 * counters then
  redis.call("HINCRBY", served, ALL_TIME, string.format("%.0f", all_us))
  redis.call("HINCRBY", served, ALL_RUNS, string.format("%.0f", all_runs))
end
redis.call("EXPIRE", tasks, TASKS_SECONDS)
redis.call("EXPIRE", served, CLIENTS_SECONDS)
redis.call("EXPIRE", busy, CLIENTS_SECONDS)
return {}
