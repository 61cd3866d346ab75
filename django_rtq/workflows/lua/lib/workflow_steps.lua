-- workflow_steps: the steps of a workflow, and what follows when all members of one have ended.
--
-- Fields of `workflow`: name, client, key, token, made, ended (ms), state, on_dead, steps: their number, on_death: the step that
-- starts at the first death, cancelling: number of the first job that is left to cancel, kept_bytes: of its results. Of step
-- <n>: task:<n>, queue:<n>, size:<n>, first:<n>: the number of its first member, keep:<n>: its results are kept, parts:<n>:
-- places of the first members of its parts, after:<n> and next:<n>: numbers of steps, with an "e" if the end is enough,
-- state:<n>: waiting, started, succeeded, failed, skipped, adding: not all of its calls are there; ends:<n>: how many are done,
-- dead, gone; and of each part that has started at:<part>, ms. Of a job that has added steps added:<its number>: number of
-- their first member, their first step, how many there are, and their digest or "whole".
--
-- Which members have ended is kept, and never only how many: each function may be called again with what it was told before.

local SIGNAL_MS = 60000
local STARTS_AT_ONCE = 16 -- parts in one reply
local FINAL = { succeeded = true, failed = true, cancelled = true }
local STATE_PLACES = { running = 0, blocked = 1, succeeded = 2, failed = 3, cancelled = 4 } -- see `workflow_states`
local STATE_PLACE = 10000000000000

-- A workflow: its id, keys and state.
local function open_workflow(q, id)
  local state, on_dead = unpack(redis.call("HMGET", q.workflow .. id, "state", "on_dead"))
  return {
    q = q, id = id, hash = q.workflow .. id, state = state, on_dead = on_dead, open = q.open_steps .. id,
    dead = q.dead_steps .. id, starting = q.starting_parts .. id,
  }
end

-- The same; nil if it is not there, or was not sent as a whole.
local function find_workflow(q, id)
  local flow = open_workflow(q, id)
  if flow.state and flow.state ~= "making" then return flow end
end

-- Set the state, and other fields with it.
local function set_state(flow, state, now, ...)
  local member = flow.id .. " " .. (redis.call("HGET", flow.hash, "name") or "")
  redis.call("ZADD", flow.q.workflow_states, string.format("%.0f", STATE_PLACES[state] * STATE_PLACE + now), member)
  redis.call("HSET", flow.hash, "state", state, ...)
end

local function bits_of(flow, step, how)
  return flow.q.members .. flow.id .. ":" .. step .. ":" .. how
end

-- Open these steps, all of whose calls are there, but the one for the first death. Returns those that wait for no other. Few
-- commands for many steps.
local function open_steps(flow, first_step, last_step)
  local fields, numbers, open, ready = { "on_death" }, {}, {}, {}
  for step = first_step, last_step do
    local n = #fields
    fields[n + 1], fields[n + 2], fields[n + 3] = "first:" .. step, "size:" .. step, "after:" .. step
  end
  local texts = redis.call("HMGET", flow.hash, unpack(fields)) -- of 1,000 steps at most
  for step = first_step, last_step do
    local place, others, n = 3 * (step - first_step) + 2, {}, #numbers
    local first, size, after = unpack(texts, place, place + 2)
    if size ~= "0" then numbers[n + 1], numbers[n + 2] = first, step end -- no member is one of an empty step
    if tostring(step) ~= texts[1] then
      open[#open + 1] = step
      if after == "" then ready[#ready + 1] = step end
    end
    for other in string.gmatch(after, "%d+") do others[#others + 1] = other end
    if #others > 0 then redis.call("SADD", flow.q.step_waits .. flow.id .. ":" .. step, unpack(others)) end
  end
  if #numbers > 0 then redis.call("ZADD", flow.q.workflow_steps .. flow.id, unpack(numbers)) end
  if #open > 0 then redis.call("SADD", flow.open, unpack(open)) end
  return ready
end

-- A step is over. Its followers start or are skipped, and so on.
local function finish_step(flow, step, how, now)
  local todo = { { step, how } }

  local function start(next)
    local state, size, first, parts = unpack(redis.call("HMGET", flow.hash, "state:" .. next, "size:" .. next,
      "first:" .. next, "parts:" .. next))
    if state ~= "waiting" then return end
    for place in string.gmatch(parts, "%d+") do
      redis.call("ZADD", flow.starting, first + place, next .. ":" .. place)
    end
    if parts ~= "" then redis.call("ZADD", flow.q.unstarted, now, flow.id) end
    redis.call("HSET", flow.hash, "state:" .. next, "started")
    if size == "0" then todo[#todo + 1] = { next, "succeeded" } end
  end

  if how == "start" then
    start(step)
    table.remove(todo, 1)
  end
  while #todo > 0 do
    local over, ending = unpack(table.remove(todo))
    if redis.call("SISMEMBER", flow.open, over) == 1 then
      redis.call("HSET", flow.hash, "state:" .. over, ending)
      redis.call("UNLINK", flow.q.step_waits .. flow.id .. ":" .. over)
      for next, is_end_enough in string.gmatch(redis.call("HGET", flow.hash, "next:" .. over), "(%d+)(e?)") do
        local waits = flow.q.step_waits .. flow.id .. ":" .. next
        if ending == "succeeded" or is_end_enough == "e" then
          redis.call("SREM", waits, over)
          if redis.call("EXISTS", waits) == 0 then start(next) end
        else
          todo[#todo + 1] = { next, "skipped" }
        end
      end
      redis.call("SREM", flow.open, over) -- last: after a torn log all of this is done again
    end
  end
end

-- Count the members of a step by their ends, and finish it if these are all.
local function count_step(flow, step, now)
  local size, on_death = unpack(redis.call("HMGET", flow.hash, "size:" .. step, "on_death"))
  local done, dead, gone = redis.call("BITCOUNT", bits_of(flow, step, "done")),
    redis.call("BITCOUNT", bits_of(flow, step, "dead")), redis.call("BITCOUNT", bits_of(flow, step, "gone"))
  redis.call("HSET", flow.hash, "ends:" .. step, done .. " " .. dead .. " " .. gone)
  if step == on_death then -- nothing waits for it
    local how = done + gone < tonumber(size) and "started" or gone == 0 and "succeeded" or "failed"
    redis.call("HSET", flow.hash, "state:" .. step, how)
    return
  end
  if FINAL[flow.state] then return end
  if dead > 0 and on_death then finish_step(flow, on_death, "start", now) end
  if dead > 0 and flow.on_dead == "block" then
    redis.call("SADD", flow.dead, step)
  else
    redis.call("SREM", flow.dead, step)
  end
  if flow.on_dead == "go_on" then gone = gone + dead end
  if done + gone == tonumber(size) then
    finish_step(flow, step, gone == 0 and "succeeded" or "failed", now)
  end
  return dead > 0 and flow.on_dead == "cancel"
end

-- Wake who waits for the workflow.
local function send_signal(flow)
  local signal = flow.q.workflow_signal .. flow.id
  redis.call("UNLINK", signal)
  redis.call("LPUSH", signal, "over")
  redis.call("PEXPIRE", signal, SIGNAL_MS)
end

-- End a workflow. Its waiting members never start.
local function end_workflow(flow, state, now)
  set_state(flow, state, now, "ended", string.format("%.0f", now))
  send_signal(flow)
end

-- How a workflow ended of which no step is open.
local function final_state(flow)
  local fields, on_death = {}, redis.call("HGET", flow.hash, "on_death")
  for step = 0, redis.call("HGET", flow.hash, "steps") - 1 do fields[#fields + 1] = "state:" .. step end
  for i, state in ipairs(#fields > 0 and redis.call("HMGET", flow.hash, unpack(fields)) or {}) do
    local is_other = state == "succeeded" or state == "adding" or tostring(i - 1) == on_death
    if not is_other then return "failed" end
  end
  return "succeeded"
end

-- Bring the state of a workflow up to date. Returns what is new: "ended", "blocked", or "".
local function update_state(flow, now)
  if FINAL[flow.state] then return "" end
  if redis.call("EXISTS", flow.open) == 0 then
    end_workflow(flow, final_state(flow), now)
    return "ended"
  end
  local state = redis.call("EXISTS", flow.dead) == 1 and "blocked" or "running"
  if state == flow.state then return "" end
  set_state(flow, state, now)
  if state == "blocked" then send_signal(flow) else redis.call("UNLINK", flow.q.workflow_signal .. flow.id) end
  return state == "blocked" and "blocked" or ""
end

-- Append parts that are to be enqueued to a reply, each with its queue.
local function add_starting(flow, reply)
  for _, part in ipairs(redis.call("ZRANGE", flow.starting, 0, STARTS_AT_ONCE - 1)) do
    reply[#reply + 1] = part
    reply[#reply + 1] = redis.call("HGET", flow.hash, "queue:" .. string.match(part, "^%d+"))
  end
  return reply
end
