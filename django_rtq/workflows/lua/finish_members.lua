-- finish_members: settle members of workflows that have succeeded, and let their workflows go on: what `settle` and
-- `advance_workflow` do, without notes in between. There are two queues: that of the members, and the default one, which may
-- be the same.
-- uses: prelude settle member_ends workflow_steps
-- KEYS[2] running     the worker's processing list
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[...] jobs      of each: id, ms to keep, outcome ("": only the id); at most 500, of few workflows. Of a job that has added
--                     steps -1 - ms: it is stale if these are not there, because the log was torn
--
-- returns {the ids that were stale: no longer this worker's to settle; then of each workflow its id, and the reply of
--         advance_workflow}
-- sent twice: every id is stale the second time, and nothing changes; a heartbeat enqueues parts whose names were lost

local q, most, jobs = named(), tonumber(ARGV[1]), ARGV
local home = KEYS[3] == KEYS[1] and q or named(3)
local now, flows, order, lacking = now_ms(q.clock), {}, {}, {}

-- What becomes known in this call of the workflow of a member; false if that is gone.
local function ends_of(id)
  local flow = string.sub(id, 14, 16) .. string.sub(id, 18, 26)
  if flows[flow] == nil then
    flows[flow] = open_ends(home, flow, now) or false
    if flows[flow] then order[#order + 1] = flows[flow] end
  end
  return flows[flow]
end

-- Whether what a member has added is there, or its workflow is over.
local function has_added(flow, id)
  local note = redis.call("HGET", flow.hash, "added:" .. tonumber(string.sub(id, -6), 16)) or ""
  return FINAL[flow.state] or string.match(note, "%S*$") == "whole"
end

local mine, stale, entries = split_held(q.running, jobs, 3, 2)
for i = 1, #mine do
  local id = jobs[mine[i]]
  local ends = ends_of(id)
  local is_whole = true
  if string.byte(jobs[mine[i] + 1]) == 45 then
    jobs[mine[i] + 1] = string.format("%.0f", -1 - jobs[mine[i] + 1])
    is_whole = not ends or has_added(ends.flow, id)
    if not is_whole then table.insert(lacking, 1, i) end
  end
  if ends and is_whole then add_end(ends, id, "done", string.byte(id, 17) == 57 and jobs[mine[i] + 2] or "") end
end
for _, i in ipairs(lacking) do -- from behind
  stale[#stale + 1] = jobs[table.remove(mine, i)]
  table.remove(entries, i)
end
-- Before the jobs leave `running`: what a torn log has lost is done again when they run again.
for i = 1, #order do order[i].news = write_ends(order[i]) end
finish_held(q, jobs, mine, entries, most, now, "succeeded")
local reply = { stale }
for i = 1, #order do
  local flow = order[i].flow
  reply[2 * i], reply[2 * i + 1] = flow.id, add_starting(flow, { order[i].news, redis.call("HGET", flow.hash, "name") })
end
return reply
