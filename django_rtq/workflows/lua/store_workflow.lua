-- store_workflow: store a part of a new workflow; with the last part it begins. There are several queues: the default one, and
-- those of the steps that begin.
-- uses: prelude workflow_steps waiting
-- ARGV[1] id          of the workflow
-- ARGV[2] token       of its maker
-- ARGV[3] is_last     "1": it is whole now
-- ARGV[4] key         name, newline, key; "": it is not unique
-- ARGV[5] rooms       number of texts in `list` that say how many members want to begin
-- ARGV[6] pairs       number of texts in `list` that are fields and values of the workflow, at most 2,000; so of the rest
-- ARGV[...] list      of `rooms`: the number of the queue in KEYS, the client ("\n": any), how many members. The pairs. Then
--                     parts and the calls of their members in turn: the first line of each has the band, max_crashes, due,
--                     expires and front of the job, as in enqueue_many, and its client; the second one the body
--
-- returns {"ok", its state ("" before the last part), parts to be enqueued and their queues in turn}; {"duplicate", id} of that
--         with this key that is not over: the key is taken with the last part; {"taken"}: another workflow has this id; {"full
--         queue" or "full client" with how many wait and may wait, number of the queue, client}. After these three nothing is
--         stored, nor what was before
-- sent twice: nothing changes the second time, and more parts are to be enqueued if there are any left

local q, id, token, is_last, key, list = named(), ARGV[1], ARGV[2], ARGV[3] == "1", ARGV[4], ARGV
local FIRST_TEXT = 7
local rooms_end = FIRST_TEXT - 1 + ARGV[5]
local pairs_end = rooms_end + ARGV[6]
local now, hash = now_ms(q.clock), q.workflow .. id

-- The workflow that keeps this one from being made, as a reply: a whole one that is not over.
local function find_other()
  local other = key ~= "" and redis.call("HGET", q.workflow_keys, key)
  local flow = other and other ~= id and find_workflow(q, other)
  return flow and not FINAL[flow.state] and { "duplicate", other }
end

-- Whether those fit that begin. Returns nothing, or the reply that says why they do not.
local function find_lack()
  local queues = {}
  for place = FIRST_TEXT, rooms_end, 3 do
    local number, client, members = unpack(list, place, place + 2)
    local queue = queues[number] or { q = named(tonumber(number)), rooms = { clients = {} } }
    queues[number] = queue
    if client == "\n" then queue.rooms.clients[client] = { waiting = 0, most = math.huge, is_exact = true } end
    local has_limits = redis.call("EXISTS", queue.q.waiting_limits) == 1
    local full = has_limits and take_place(queue.q, queue.rooms, client, tonumber(members))
    if full then return { full, number, client } end
  end
end

-- It is not whole, and never will be.
local function forget()
  redis.call("UNLINK", q.waiting_members .. id, hash)
  redis.call("ZREM", q.unstarted, id)
end

-- It is whole: open its steps, and start those that wait for no other.
local function begin()
  local flow = open_workflow(q, id)
  for _, step in ipairs(open_steps(flow, 0, redis.call("HGET", hash, "steps") - 1)) do finish_step(flow, step, "start", now) end
  if key ~= "" then redis.call("HSET", q.workflow_keys, key, id) end
  redis.call("ZADD", q.workflows, now, id)
  if redis.call("EXISTS", flow.starting) == 0 then redis.call("ZREM", q.unstarted, id) end
  set_state(flow, "running", now, "made", string.format("%.0f", now)) -- a torn log: it is not whole
  update_state(flow, now)
end

local known = redis.call("HGET", hash, "token")
if known and known ~= token then return { "taken" } end
local state = known and redis.call("HGET", hash, "state")
if not state or state == "making" then
  local lack = find_other() or find_lack()
  if lack then
    forget()
    return lack
  end
  redis.call("ZADD", q.unstarted, now, id)
  redis.call("HSET", hash, "token", token, "state", "making")
  if pairs_end > rooms_end then redis.call("HSET", hash, unpack(list, rooms_end + 1, pairs_end)) end
  if #list > pairs_end then redis.call("HSET", q.waiting_members .. id, unpack(list, pairs_end + 1)) end
  if is_last then begin() end
end
local flow = is_last and find_workflow(q, id)
return flow and add_starting(flow, { "ok", redis.call("HGET", hash, "state") }) or { "ok", "" }
