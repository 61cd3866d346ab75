-- cancel_workflow: end a workflow. None of its steps starts any more, but the one for the first death if there was one; its jobs
-- that are live are left to the caller.
-- uses: prelude workflow_steps
-- ARGV[1] id          of the workflow
-- ARGV[2] left        "": cancel it; of one that is cancelled: the number of the first of its jobs that are left to cancel, or
--                     "all" if none is
--
-- returns "cancelled", "over" if it is over, "missing", or "noted"
-- sent twice: "over" or "noted", and nothing changes

local q, id, left = named(), ARGV[1], ARGV[2]
local now, flow = now_ms(q.clock), find_workflow(q, id)

if not flow then return "missing" end
if left == "all" then
  if redis.call("EXISTS", flow.starting) == 0 then redis.call("ZREM", q.unstarted, id) end
  redis.call("HDEL", flow.hash, "cancelling")
elseif left ~= "" and redis.call("HEXISTS", flow.hash, "cancelling") == 1 then
  redis.call("HSET", flow.hash, "cancelling", left)
end
if left ~= "" then return "noted" end
if FINAL[flow.state] then return "over" end
redis.call("ZADD", q.workflows, now, id)
redis.call("ZADD", q.unstarted, now, id) -- a heartbeat goes on with it
redis.call("HSET", flow.hash, "cancelling", 0)
end_workflow(flow, "cancelled", now)
local on_death = (redis.call("HGET", flow.hash, "on_death") or "") .. ":0" -- its only part
local place = redis.call("ZSCORE", flow.starting, on_death)
local calls = place and redis.call("HGET", q.waiting_members .. id, on_death)
redis.call("UNLINK", flow.open, flow.dead, flow.starting, q.waiting_members .. id)
if calls then
  redis.call("HSET", q.waiting_members .. id, on_death, calls)
  redis.call("ZADD", flow.starting, place, on_death)
end
return "cancelled"
