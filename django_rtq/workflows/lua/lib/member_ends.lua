-- member_ends: members of a workflow have ended.
-- uses: workflow_steps

local MOST_BYTES = 64000000 -- of the results of a workflow

-- What becomes known in this call of a workflow: `steps` of which members have ended. nil if there is no such workflow.
local function open_ends(q, id, now)
  local flow = find_workflow(q, id)
  return flow and { q = q, flow = flow, now = now, steps = {}, kept_bytes = 0 }
end

-- The step with this member. nil if the workflow has none with this number.
local function find_step(ends, number)
  local steps, flow = ends.steps, ends.flow
  for _, step in ipairs(steps) do
    if number >= step.first and number < step.first + step.size then return step end
  end
  local order = ends.q.workflow_steps .. flow.id
  local name, first = unpack(redis.call("ZREVRANGEBYSCORE", order, number, "-inf", "WITHSCORES", "LIMIT", 0, 1))
  local size = name and tonumber(redis.call("HGET", flow.hash, "size:" .. name)) or 0
  if size == 0 or number >= first + size then return nil end
  local has_failed = redis.call("EXISTS", bits_of(flow, name, "dead"), bits_of(flow, name, "gone")) > 0
  local step = { name = name, first = tonumber(first), size = size, has_failed = has_failed, set = {}, cleared = {} }
  steps[#steps + 1] = step
  return step
end

-- Add to the bits of a step that are to be set, or to be cleared, by how its members ended: arguments of BITFIELD.
local function add_bit(kind, how, place, value)
  local bits = kind[how] or {}
  local n = #bits
  bits[n + 1], bits[n + 2], bits[n + 3], bits[n + 4], kind[how] = "SET", "u1", place, value, bits
end

-- A member has ended so: the bit that says so is to be set, and the others cleared. The outcome is kept, unless it is "".
local function add_end(ends, id, how, outcome)
  local number = tonumber(string.sub(id, -6), 16)
  local step = find_step(ends, number)
  if not step then return end
  local place = number - step.first
  if how ~= "open" then add_bit(step.set, how, place, "1") end
  if step.has_failed then -- else nor had any before this call: there is nothing to clear
    add_bit(step.cleared, "dead", place, "0")
    add_bit(step.cleared, "gone", place, "0")
  end
  if outcome ~= "" then
    local is_new = redis.call("HSET", ends.q.step_results .. ends.flow.id, number, outcome) == 1
    ends.kept_bytes = redis.call("HINCRBY", ends.flow.hash, "kept_bytes", is_new and #outcome or 0)
  end
end

-- Write what has become known, and find out what follows. Returns what is new, as advance_workflow does.
local function write_ends(ends)
  local flow, now, is_cancelled = ends.flow, ends.now, false
  for _, step in ipairs(ends.steps) do
    -- First those that are to be cleared: one of them may be set.
    for how, bits in pairs(step.cleared) do redis.call("BITFIELD", bits_of(flow, step.name, how), unpack(bits)) end
    for how, bits in pairs(step.set) do redis.call("BITFIELD", bits_of(flow, step.name, how), unpack(bits)) end
    if count_step(flow, step.name, now) then is_cancelled = true end
  end
  local news = update_state(flow, now)
  if #ends.steps > 0 then redis.call("ZADD", ends.q.workflows, now, flow.id) end
  if is_cancelled and news == "" then news = "cancel" end
  if ends.kept_bytes > MOST_BYTES and news == "" then news = "full" end
  return news
end
