-- advance_workflow: take note of members that have ended, and start what follows. There are two queues: the default one, and that
-- of the members.
-- uses: prelude member_ends workflow_steps
-- ARGV[1] id          of the workflow
-- ARGV[...] ids       of its members, at most 500; of those that have not ended nothing is noted. None: who waits for the
--                     workflow is woken if it is over or blocked
--
-- returns {what is new: "ended", "blocked", "cancel": it is to be cancelled, "full": it keeps no more results, or ""; its name;
--         then parts that are to be enqueued, and their queues, in turn, at most 16}; {"missing"}: there is no such workflow
-- sent twice: nothing is new the second time; parts that are not enqueued yet are returned again

local q, target, id, ids, noted = named(), named(2), ARGV[1], { select(2, unpack(ARGV)) }, {}
local ends = open_ends(q, id, now_ms(q.clock))

for i, note in ipairs(#ids > 0 and redis.call("HMGET", target.ended_members, unpack(ids)) or {}) do
  if note then
    noted[#noted + 1] = ids[i]
    local how, outcome = note, ""
    if note ~= "done" then how, outcome = string.match(note, "^(%l+) *(.*)$") end
    if ends then add_end(ends, ids[i], how, outcome) end
  end
end
local news = ends and write_ends(ends)
if #noted > 0 then redis.call("HDEL", target.ended_members, unpack(noted)) end -- last: a torn log lets all be done again
if not ends then return { "missing" } end
local flow = ends.flow
if #ids == 0 and flow.state ~= "running" then send_signal(flow) end
return add_starting(flow, { news, redis.call("HGET", flow.hash, "name") })
