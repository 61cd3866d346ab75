-- advance_workflow: take note of members that have ended, and start what follows. There are two queues: the default one, and that
-- of the members.
-- uses: prelude workflow_steps members
-- keys: ended_members workflow workflows workflow_states workflow_steps open_steps dead_steps step_waits members step_results
--       starting_parts unstarted workflow_signal clock scratch
-- ARGV[1] id          of the workflow
-- ARGV[...] ids       of its members, at most 500; of those that have not ended nothing is noted. None: who waits for the
--                     workflow is woken if it is over or blocked
--
-- returns {what is new: "ended", "blocked", "cancel": it is to be cancelled, "full": it keeps no more results, or ""; its name;
--         then parts that are to be enqueued, and their queues, in turn, at most 16}; {"missing"}: there is no such workflow
-- sent twice: nothing is new the second time; parts that are not enqueued yet are returned again

local q, target, id, ids = named(), named(2), ARGV[1], { select(2, unpack(ARGV)) }
local now, flow = now_ms(q.clock), find_workflow(q, id)
local steps, kept_bytes = {}, 0
local MOST_BYTES = 64000000 -- of the results of a workflow

-- The step with this member, and the number of its first one.
local function find_step(number)
  for _, step in ipairs(steps) do
    if number >= step.first and number < step.first + step.size then return step end
  end
  local order = q.workflow_steps .. id
  local name, first = unpack(redis.call("ZREVRANGEBYSCORE", order, number, "-inf", "WITHSCORES", "LIMIT", 0, 1))
  local size = tonumber(redis.call("HGET", flow.hash, "size:" .. name))
  local has_failed = redis.call("EXISTS", bits_of(flow, name, "dead"), bits_of(flow, name, "gone")) > 0
  local step = { name = name, first = tonumber(first), size = size, has_failed = has_failed, sets = {} }
  steps[#steps + 1] = step
  return step
end

-- Which bits say how a member ended is collected in `sets` of its step: of each name, commands of BITFIELD.
local function add_bit(step, how, place, bit)
  local sets = step.sets[how]
  if not sets then
    sets = { n = 0 }
    step.sets[how] = sets
  end
  local n = sets.n
  sets[n + 1], sets[n + 2], sets[n + 3], sets[n + 4], sets.n = "SET", "u1", place, bit, n + 4
end

-- Set the bit that says how a member ended, and clear the others.
local function note_end(step, place, how)
  if how ~= "open" then add_bit(step, how, place, 1) end
  if not step.has_failed then return end -- nor had any before this call: there is nothing to clear
  for _, other in ipairs({ "dead", "gone" }) do
    if other ~= how then add_bit(step, other, place, 0) end
  end
end

local noted = {}
redis.call("DEL", q.scratch) -- lets a full server be drained
for i, note in ipairs(read_notes(target, ids)) do
  if note then noted[#noted + 1] = ids[i] end
  if note and flow then
    local number, how, outcome = tonumber(string.sub(ids[i], -6), 16), note, ""
    if note ~= "done" then how, outcome = string.match(note, "^(%l+) *(.*)$") end
    local step = find_step(number)
    note_end(step, number - step.first, how)
    if outcome ~= "" then
      local is_new = redis.call("HSET", q.step_results .. id, number, outcome) == 1
      kept_bytes = redis.call("HINCRBY", flow.hash, "kept_bytes", is_new and #outcome or 0)
    end
    step.is_touched = true
  end
end
local is_cancelled = false
for _, step in ipairs(steps) do
  for how, sets in pairs(step.sets) do redis.call("BITFIELD", bits_of(flow, step.name, how), unpack(sets, 1, sets.n)) end
  if step.is_touched and count_step(flow, step.name, now) then is_cancelled = true end
end
local news = flow and update_state(flow, now)
if flow and #noted > 0 then redis.call("ZADD", q.workflows, now, id) end
drop_notes(target, noted) -- last: a torn log lets all of this be done again
if not flow then return { "missing" } end
if #ids == 0 and flow.state ~= "running" then send_signal(flow) end
if is_cancelled and news == "" then news = "cancel" end
if kept_bytes > MOST_BYTES and news == "" then news = "full" end
return add_starting(flow, { news, redis.call("HGET", flow.hash, "name") })
