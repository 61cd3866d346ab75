-- weighted_turns: whose jobs come next where clients have weights: always those of the client with the lowest turn.
-- created when first called
-- uses: claim limits blocking weights time_turns

-- Whether a client comes before another: by turn, then by name, as in a zset.
local function is_before(turns, c, other)
  local one, two = turns.clients[c], turns.clients[other]
  local difference = turns.scores[one] - turns.scores[two]
  if difference ~= 0 then return difference < 0 end
  local i = 1
  while string.byte(one, i) == string.byte(two, i) do i = i + 1 end
  return (string.byte(one, i) or -1) < (string.byte(two, i) or -1)
end

-- Put c in place of the first of a binary heap, where it belongs now.
local function sift(turns, heap, c)
  local i = 1
  while heap[2 * i] do
    local child = 2 * i
    if heap[child + 1] and is_before(turns, heap[child + 1], heap[child]) then child = child + 1 end
    if not is_before(turns, heap[child], c) then break end
    heap[i], i = heap[child], child
  end
  if heap[1] then heap[i] = c end
end

-- Read on in the lane of a client, up to the job after the next: so it is known whether the client has more.
local function read_line(turns, c, share)
  local line = turns.lines[c] or {}
  turns.lines[c] = line
  if turns.is_read[c] or #line > turns.taken[c] + 1 then return line end
  local most = #line + share
  local more = redis.call("LRANGE", turns.lanes[c], #line, #line + most)
  for _, id in ipairs(more) do line[#line + 1] = id end
  turns.is_read[c] = #more <= most
  return line
end

-- The first clients of a band and their turns, and how many clients have one.
local function open_turns(q, band, wanted)
  if q.has_times then
    charge_running(q, q.ring .. band, wanted)
    place_by_time(q, band)
  else
    place_newcomers(q, q.ring .. band)
  end
  local found, n = first_turns(q.ring .. band, q.aside and wanted + q.aside.n or wanted)
  if q.aside then leave_aside(q, found, 2) end
  local turns = { clients = {}, scores = {}, lanes = {}, lines = {}, is_read = {}, taken = {}, blocked = {} }
  turns.ids, turns.owners = {}, {}
  for c = 1, #found / 2 do
    local client = found[2 * c - 1]
    turns.clients[c], turns.scores[client] = client, tonumber(found[2 * c])
    turns.lanes[c], turns.taken[c] = q.lane .. band .. ":" .. client, 0
  end
  return turns, n
end

-- Collect the jobs of the next turns of a band, as if each job were claimed alone.
local function take_weighted_turns(q, band, claim)
  local turns, n = open_turns(q, band, claim.wanted)
  local clients, ids, heap, share = turns.clients, turns.ids, {}, math.ceil(claim.wanted / #turns.clients)
  local has_skips = q.has_cancelled_in_lane or q.pauses
  local rooms, steps = read_rooms(q, clients), q.has_times and read_steps(q, clients) or read_strides(q, clients)
  for c = 1, #clients do heap[c] = c end
  while heap[1] and #ids < claim.wanted do
    local c, more = heap[1], false
    local client, taken = clients[c], turns.taken[c]
    if has_skips and not turns.lines[c] then skip_first(q, claim, band .. ":" .. client) end
    local id = read_line(turns, c, share)[taken + 1]
    if id and has_skips and is_to_skip(q, id) then break end
    if id and taken >= rooms[c] then
      block(q, band, client)
      if q.has_times then keep_turn(q, band, client, turns.scores[client]) end
      turns.blocked[c] = true
    elseif id then
      turns.is_stopped = q.has_crashes and not may_join(q, claim, id, #ids)
      if turns.is_stopped then break end
      ids[#ids + 1], turns.owners[#ids + 1], turns.taken[c] = id, client, taken + 1
      turns.scores[client] = turns.scores[client] + (q.has_times and 1 or n) * steps[c]
      more = turns.lines[c][taken + 2]
    end
    sift(turns, heap, more and c or table.remove(heap))
    if not more then n = n - 1 end
    if c == claim.wanted then break end -- clients that were not read may come before the others
  end
  for c = 1, #clients do turns.lines[c] = turns.lines[c] or { true } end -- those whose turn has not come have jobs
  return turns
end
