-- _runners: who runs what.

-- The worker that has a job, what is written down of the run, and when its lease ends; nil when none has it. If a torn
-- log has given it to two, the one that lives longer.
local function runner_of(q, id)
  local workers = redis.call("ZREVRANGE", q.workers, 0, -1, "WITHSCORES")
  for i = 1, #workers, 2 do
    local held = redis.call("HGET", q.running .. workers[i], id)
    if held then return workers[i], held, workers[i + 1] end
  end
end
