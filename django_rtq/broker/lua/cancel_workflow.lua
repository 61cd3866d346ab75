-- cancel_workflow: end a workflow. None of its steps starts any more; its jobs that are live are left to the caller.
-- uses: prelude workflow_steps
-- keys: workflow workflows open_steps dead_steps starting_parts unstarted workflow_signal waiting_members clock
--       scratch
-- ARGV[1] id          of the workflow
--
-- returns "cancelled", "over" if it is over, or "missing"
-- sent twice: "over", and nothing changes

local q, id = named(), ARGV[1]
local now, flow = now_ms(q.clock), find_workflow(q, id)

if not flow then return "missing" end
if FINAL[flow.state] then return "over" end
redis.call("DEL", q.scratch) -- lets a full server be drained
redis.call("ZADD", q.workflows, now, id)
end_workflow(flow, "cancelled", now)
redis.call("UNLINK", flow.open, flow.dead, flow.starting, q.waiting_members .. id)
redis.call("ZREM", q.unstarted, id)
return "cancelled"
