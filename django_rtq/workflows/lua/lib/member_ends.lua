-- member_ends: members of a workflow have ended.
-- uses: workflow_steps

local MOST_BYTES = 64000000 -- of the results of a workflow
local WEIGHTS = { [0] = 128, 64, 32, 16, 8, 4, 2, 1 } -- of the bits of a byte, in the order of BITFIELD

-- What becomes known in this call of a workflow: `steps` of which members have ended. nil if there is no such workflow.
local function open_ends(q, id, now)
  local flow = find_workflow(q, id)
  return flow and { q = q, flow = flow, now = now, steps = {}, kept_bytes = 0 }
end

-- The step with this member. nil if the workflow has none with this number.
local function find_step(ends, number)
  local steps, flow, last = ends.steps, ends.flow, ends.last
  if last and number >= last.first and number < last.first + last.size then return last end
  for _, step in ipairs(steps) do
    if number >= step.first and number < step.first + step.size then
      ends.last = step
      return step
    end
  end
  local order = ends.q.workflow_steps .. flow.id
  local name, first = unpack(redis.call("ZREVRANGEBYSCORE", order, number, "-inf", "WITHSCORES", "LIMIT", 0, 1))
  local size = name and tonumber(redis.call("HGET", flow.hash, "size:" .. name)) or 0
  if size == 0 or number >= first + size then return nil end
  local has_failed = redis.call("EXISTS", bits_of(flow, name, "dead"), bits_of(flow, name, "gone")) > 0
  local step = { name = name, first = tonumber(first), size = size, has_failed = has_failed, set = {}, cleared = {} }
  steps[#steps + 1], ends.last = step, step
  return step
end

-- Note in `set` or `cleared` of a step, by how members ended, that a bit is to be set or cleared: the masks of bytes. Members
-- that end together have most often begun together, so there are few bytes.
local function add_bit(kind, how, place)
  local masks = kind[how]
  if not masks then
    masks = { bytes = {} }
    kind[how] = masks
  end
  local rest = place % 8
  local byte, weight = (place - rest) / 8, WEIGHTS[rest]
  local mask = masks[byte]
  if not mask then
    masks[byte] = weight
    masks.bytes[#masks.bytes + 1] = byte
  elseif mask % (2 * weight) < weight then
    masks[byte] = mask + weight
  end
end

-- Set, or clear, these bits of a string.
local function write_bits(key, masks, to_set)
  local reads, writes, r, w = {}, {}, 0, 0
  for _, byte in ipairs(masks.bytes) do
    reads[r + 1], reads[r + 2], reads[r + 3], r = "GET", "u8", "#" .. byte, r + 3
  end
  for i, value in ipairs(redis.call("BITFIELD", key, unpack(reads))) do
    local mask, written = masks[masks.bytes[i]], value
    for rest = 0, value == 0 and -1 or 7 do
      local weight = WEIGHTS[rest]
      local is_set = value % (2 * weight) >= weight
      if mask % (2 * weight) >= weight and is_set ~= to_set then
        written = is_set and written - weight or written + weight
      end
    end
    if value == 0 and to_set then written = mask end -- as most are
    writes[w + 1], writes[w + 2], writes[w + 3], writes[w + 4], w = "SET", "u8", reads[3 * i], written, w + 4
  end
  redis.call("BITFIELD", key, unpack(writes))
end

-- A member has ended so: the bit that says so is to be set, and the others cleared. The outcome is kept, unless it is "".
local function add_end(ends, id, how, outcome)
  local number = tonumber(string.sub(id, -6), 16)
  local step = find_step(ends, number)
  if not step then return end
  local place = number - step.first
  if how ~= "open" then add_bit(step.set, how, place) end
  if step.has_failed then -- else nor had any before this call: there is nothing to clear
    add_bit(step.cleared, "dead", place)
    add_bit(step.cleared, "gone", place)
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
    for how, masks in pairs(step.cleared) do write_bits(bits_of(flow, step.name, how), masks, false) end
    for how, masks in pairs(step.set) do write_bits(bits_of(flow, step.name, how), masks, true) end
    if count_step(flow, step.name, now) then is_cancelled = true end
  end
  local news = update_state(flow, now)
  if #ends.steps > 0 then redis.call("ZADD", ends.q.workflows, now, flow.id) end
  if is_cancelled and news == "" then news = "cancel" end
  if ends.kept_bytes > MOST_BYTES and news == "" then news = "full" end
  return news
end
