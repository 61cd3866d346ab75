-- turns: round-robin between clients. The ring holds the clients with work; the lowest turn is served first and gets a new
-- one.
-- uses: prelude lanes claim limits blocking virtual_turns

-- The first clients of a band, of those that are not blocked.
local function first_clients(q, band, n)
  n = q.aside and n + q.aside.n or n
  if not q.has_limits then return redis.call("ZRANGE", q.ring .. band, "0", n - 1) end
  return redis.call("ZRANGEBYSCORE", q.ring .. band, "-inf", "(inf", "LIMIT", "0", n)
end

-- Collect the jobs of the next turns of a band, as if each job were claimed alone.
local function take_turns(q, band, claim)
  if q.has_weights then return take_virtual_turns(q, band, claim) end
  local clients = first_clients(q, band, claim.wanted + 1) -- one more: whether others have work
  local is_whole = #clients <= claim.wanted and not (q.has_limits or q.aside) -- these are all that have work
  local turns = { clients = clients, is_alone = #clients == 1, is_whole = is_whole, lanes = {}, lines = {}, taken = {}, ids = {} }
  if q.aside then leave_aside(q, clients, 1) end
  for c = #clients, claim.wanted + 1, -1 do clients[c] = nil end
  local rooms = q.has_limits and read_rooms(q, clients)
  turns.rooms = rooms
  if rooms then turns.owners, turns.blocked = {}, {} end
  local share = math.ceil(claim.wanted / math.max(#clients, 1))
  local lane, last, has_skips = q.lane .. band .. ":", tostring(share), q.has_cancelled_in_lane or q.pauses
  local lanes, lines, taken, ids, n = turns.lanes, turns.lines, turns.taken, turns.ids, 0
  for c, client in ipairs(clients) do
    if has_skips then skip_first(q, claim, band .. ":" .. client) end
    local key = lane .. client
    lanes[c], taken[c] = key, 0
    lines[c] = redis.call("LRANGE", key, "0", last) -- one more: the next head of the lane
  end
  for round = 1, share do
    for c = 1, #clients do
      local id = lines[c][round]
      if n == claim.wanted then return turns end
      if id and has_skips and is_to_skip(q, id) then return turns end
      if id and rooms and taken[c] >= rooms[c] then
        if not turns.blocked[c] then block(q, band, clients[c]) end
        id, turns.blocked[c] = nil, true
      end
      if id and q.has_crashes and not may_join(q, claim, id, n) then
        turns.is_stopped = true
        return turns
      end
      if id then
        n = n + 1
        ids[n], taken[c] = id, round
        if rooms then turns.owners[n] = clients[c] end
      end
    end
  end
  return turns
end

-- Remove the taken ids from their lanes. Clients with more work go to the end of the ring, the least served first; a
-- client alone stays where it is: whoever comes gets a later turn. Returns whether the ring has clients with work left.
local function end_turns(q, band, turns)
  local ring, most = q.ring .. band, math.max(0, unpack(turns.taken))
  local going_on, later, gone, empty, heads, places = {}, {}, {}, {}, {}, {}
  q.has_room = false -- whether a client that goes on may start a job
  for c, client in ipairs(turns.clients) do
    local taken, lane = turns.taken[c], band .. ":" .. client
    local first = turns.lines[c][taken + 1]
    if taken == 1 then redis.call("LPOP", turns.lanes[c]) end -- most often, with many clients: LTRIM returns a table
    if taken > 1 then redis.call("LTRIM", turns.lanes[c], taken, -1) end
    if not first then
      empty[#empty + 1] = lane
      local list = turns.stays and turns.stays[c] and going_on or gone
      list[#list + 1] = client
    elseif taken > 0 then
      if turns.rooms and turns.rooms[c] > taken then q.has_room = true end
      heads[#heads + 1], heads[#heads + 2] = waiting_since(q, first, q.now), lane
      table.insert(turns.blocked and turns.blocked[c] and {} or taken == most and later or going_on, client)
    end
  end
  for _, client in ipairs(later) do going_on[#going_on + 1] = client end
  if #empty > 0 then redis.call("ZREM", q.lanes, unpack(empty)) end
  if #heads > 0 then add_entries(q.lanes, heads) end
  if #going_on > 0 and not turns.is_alone then
    local last = turns.scores and 0 or redis.call("INCRBY", q.turn, #going_on) - #going_on
    for i, client in ipairs(going_on) do
      places[2 * i - 1], places[2 * i] = turns.scores and turns.scores[client] or last + i, client
    end
    add_entries(ring, places)
  end
  if turns.stays and #empty > 0 and not has_waiting(q) then return false end
  if #going_on > 0 and #gone == 0 then return true end
  if #gone > 0 then redis.call("ZREM", ring, unpack(gone)) end
  local is_empty = turns.is_whole and #gone == #turns.clients or redis.call("EXISTS", ring) == 0
    or (q.has_limits and #first_clients(q, band, 1) == 0)
  if is_empty then redis.call("ZREM", q.bands, band) end
  return not is_empty
end
