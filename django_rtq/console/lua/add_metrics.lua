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
local CLIENTS_SECONDS, VERSION_SECONDS, MOST_VERSIONS = 4200, 604800, 5 -- versions: the newest
local now = now_ms(q.clock)
local tasks = q.tasks .. math.floor(now / HOUR_MS)
local slice = string.format("%.0f", math.floor(now / SLICE_MS))
local served, busy = q.client_runs .. slice, q.client_time .. slice

-- Count runs by the version of the project: those of each task, and those of the queue, as of a task without a name.
local function count_version()
  if redis.call("ZADD", q.run_versions, "NX", now, version) == 1 then
    for _, old in ipairs(redis.call("ZRANGE", q.run_versions, 0, -MOST_VERSIONS - 1)) do
      redis.call("UNLINK", q.tasks .. "v" .. old, q.failed_runs .. "v" .. old)
      redis.call("ZREM", q.run_versions, old)
    end
  end
  local key, failed, sums = q.tasks .. "v" .. version, q.failed_runs .. "v" .. version, {}
  for i = 1, 2 * counters, 2 do
    local kind, task = string.match(counted[i], "^(%S+) (.*)$")
    if kind == "done" or kind == "failed" or string.find(kind or "", "^r%-?%d") then
      add_counter(key, counted[i], counted[i + 1])
      sums[kind] = (sums[kind] or 0) + counted[i + 1]
    end
    if kind == "failed" then add_counter(failed, task, counted[i + 1]) end
  end
  for kind, number in pairs(sums) do add_counter(key, kind .. " ", string.format("%.0f", number)) end
  for _, each in ipairs({ q.run_versions, key, failed }) do redis.call("EXPIRE", each, VERSION_SECONDS) end
end

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
if version ~= "" and counters > 0 then count_version() end
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
