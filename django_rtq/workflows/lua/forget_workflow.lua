-- forget_workflow: delete a workflow that is over, or that was never sent as a whole. Its jobs stay.
-- uses: prelude
-- ARGV[1] id          of the workflow
-- ARGV[2] latest      only if it did not end later, or get another part, ms
-- ARGV[3] member      "", or its member of `workflow_states`, which goes also if the workflow is missing
--
-- returns "forgotten", "open" if it is not over, or was not by then, or "missing"
-- sent twice: "missing", and nothing changes

local q, id, latest, member = named(), ARGV[1], tonumber(ARGV[2]), ARGV[3]
local hash, now = q.workflow .. id, now_ms(q.clock)
local state, steps, key, name, ended = unpack(redis.call("HMGET", hash, "state", "steps", "key", "name", "ended"))
local since = state == "making" and redis.call("ZSCORE", q.unstarted, id) or ended

if not state then
  redis.call("ZREM", q.workflows, id)
  redis.call("ZREM", q.unstarted, id)
  redis.call("ZREM", q.workflow_states, member)
  return "missing"
end
if state == "running" or state == "blocked" or tonumber(since or 0) > latest or now < latest then return "open" end
if key and redis.call("HGET", q.workflow_keys, key) == id then redis.call("HDEL", q.workflow_keys, key) end
for step = 0, (steps or 0) - 1 do
  local bits = q.members .. id .. ":" .. step .. ":"
  redis.call("UNLINK", q.step_waits .. id .. ":" .. step, bits .. "done", bits .. "dead", bits .. "gone")
end
redis.call("UNLINK", q.workflow_steps .. id, q.open_steps .. id, q.dead_steps .. id, q.waiting_members .. id,
  q.starting_parts .. id, q.step_results .. id, q.workflow_signal .. id)
redis.call("ZREM", q.unstarted, id)
redis.call("ZREM", q.workflows, id)
redis.call("ZREM", q.stuck_workflows, id .. " " .. (name or ""))
redis.call("UNLINK", hash)
redis.call("ZREM", q.workflow_states, id .. " " .. (name or "")) -- last: after a torn log it is deleted again
return "forgotten"
