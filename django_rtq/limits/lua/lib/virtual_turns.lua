-- virtual_turns: turns by virtual time, for clients that have weights or share the time of workers (`fair_by` is "seconds"):
-- stride scheduling (C. Waldspurger and W. Weihl, Stride Scheduling: Deterministic Proportional-Share Resource Management,
-- MIT/LCS/TM-528, 1995). The client with the lowest turn comes first, and a job moves its turn on by cost * stride. A stride
-- is the default weight divided by that of the client. The cost of a job is
-- - the number of clients that take turns: who has the default weight moves to the end of the ring;
-- - or its time, ms. A claim charges the average time of the client's last jobs, and the end of the job what it has used
--   instead. Running jobs that take longer are charged when their client comes to the head of its ring.
-- A client without waiting jobs stays in the ring until its turn comes, so who enqueues one job after the other gets no more
-- and no less than others. A client that enters the ring gets a number from `turn`, as in other queues. These numbers are
-- greater than all turns, and the next claim changes them into turns.
-- created when first called
-- uses: prelude claim limits blocking used_times

local NEWCOMERS = "1e15" -- from here on, a turn is only a number in the order of arrival
local FIRST_NEWCOMER = "2000000000000000" -- so far beyond that a job which is given back may come before it
local DEBT_MS = 3600000 -- how far behind the others a client may be that was blocked

-- All who wait become newcomers, in their order.
local function come_anew(q)
  for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, -1)) do
    for _, client in ipairs(redis.call("ZRANGEBYSCORE", q.ring .. band, "-inf", "(inf", "LIMIT", 0, 1000)) do
      redis.call("ZADD", q.ring .. band, redis.call("INCR", q.turn), client)
    end
  end
end

-- From now on, newcomers get numbers that are greater than all turns. It stays so when the last weight is removed. Those
-- who wait already come anew: between their numbers there may be any distance.
local function mark_newcomers(q)
  if tonumber(redis.call("GET", q.turn) or 0) > tonumber(NEWCOMERS) then return end
  redis.call("INCRBY", q.turn, FIRST_NEWCOMER)
  come_anew(q)
end

-- The first clients of a ring and their turns, and how many clients have one.
local function first_turns(ring, most)
  local found = redis.call("ZRANGEBYSCORE", ring, "-inf", "(" .. NEWCOMERS, "WITHSCORES", "LIMIT", 0, most)
  return found, redis.call("ZCOUNT", ring, "-inf", "(" .. NEWCOMERS)
end

-- What is known of these clients: the stride of each, and what its jobs have used if they share time.
local function read_shares(q, clients)
  local weights, shares = read_weights(q, clients), q.has_times and read_used(q, clients) or {}
  for i, client in ipairs(clients) do
    shares[i] = shares[i] or { client = client, running = 0 }
    shares[i].stride = weights[0] / weights[i]
  end
  return shares
end

-- Give clients turns as if they came now: behind the first one by what their running jobs and one more cost.
local function place_clients(q, band, clients, condition)
  if #clients == 0 then return end
  local found, n = first_turns(q.ring .. band, 1)
  local first, places = tonumber(found[2] or (q.has_times and redis.call("HGET", q.job_times, "turn:" .. band)) or 0), {}
  for i, share in ipairs(read_shares(q, clients)) do
    local cost, apart = q.has_times and estimate(share) or n, q.has_times and 0.001 or 1
    local turn = first + ((share.running + 1) * cost + (i - 1) * apart) * share.stride
    if share.turn then turn = math.max(turn, math.min(share.turn, first + DEBT_MS)) end
    if q.has_times then start_level(q, share) end
    places[2 * i - 1], places[2 * i] = string.format("%.17g", turn), share.client
  end
  redis.call("ZADD", q.ring .. band, condition, unpack(places))
end

-- After a change of weights, those beyond the end of the ring have no later turn than they would have if they came now.
local function pull_back(q)
  for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, -1)) do
    local ring = q.ring .. band
    local found, n = first_turns(ring, 1)
    local last = string.format("(%.17g", (found[2] or 0) + n)
    place_clients(q, band, redis.call("ZRANGEBYSCORE", ring, last, "(" .. NEWCOMERS, "LIMIT", 0, 500), "LT")
  end
end

-- Charge a client for what its running jobs have used by now, and for what others have that ended: its turn moves on in all its
-- rings, or back. Newcomers have no turn yet, and a client that is blocked has it elsewhere. Returns by how much its turn has
-- moved, and whether it is in any ring.
local function charge(q, share, spent)
  local charged = charge_of(share, q.now)
  local ms, is_there = (spent + charged - share.charged) * share.stride, share.turn
  share.charged = charged
  if share.turn then share.turn = share.turn + ms end
  for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, -1)) do
    local turn = redis.call("ZSCORE", q.ring .. band, share.client)
    is_there = is_there or turn
    if turn and tonumber(turn) < tonumber(NEWCOMERS) then
      redis.call("ZADD", q.ring .. band, string.format("%.17g", turn + ms), share.client)
    end
  end
  return ms, is_there
end

-- Jobs have left the processing lists. `held` are their entries.
local function charge_ended(q, owners, held, are_unrun)
  q.now, q.has_times = q.now or now_ms(q.clock), true
  local shares = read_shares(q, owners)
  count_ends(q, shares, held, are_unrun)
  for _, share in ipairs(shares) do
    local _, is_there = charge(q, share, share.spent)
    if share.running > 0 or is_there then write_used(q, share) else redis.call("HDEL", q.job_times, "client:" .. share.client) end
  end
end

-- If no job waits, nobody is behind anybody, but who is blocked stays so. Returns whether any waits.
local function has_waiting(q)
  if redis.call("EXISTS", q.lanes) == 1 then return true end
  local bands = redis.call("ZRANGE", q.bands, 0, -1)
  for _, band in ipairs(bands) do redis.call("ZREMRANGEBYSCORE", q.ring .. band, "-inf", "(inf") end
  redis.call("DEL", q.bands)
  return false
end

-- Whether a name comes before another, as in a zset. Lua compares by the language of the server.
local function is_before(one, two)
  local i = 1
  while string.byte(one, i) == string.byte(two, i) do i = i + 1 end
  return (string.byte(one, i) or -1) < (string.byte(two, i) or -1)
end

-- Put c in place of the first of a binary heap, where it belongs now: clients by turn, then by name.
local function sift(turns, heap, c)
  local clients, at, i, child = turns.clients, turns.at, 1, 2
  local first, turn = heap[2], turns.at[c]
  while first do
    local low, second = at[first], heap[child + 1]
    if second and (at[second] < low or (at[second] == low and is_before(clients[second], clients[first]))) then
      first, low, child = second, at[second], child + 1
    end
    if turn < low or (turn == low and is_before(clients[c], clients[first])) then break end
    heap[i], i, child = first, child, 2 * child
    first = heap[child]
  end
  if heap[1] then heap[i] = c end
end

-- Read on in the lane of a client, up to the job after the next: so it is known whether the client has more.
local function read_line(turns, c, share)
  local line = turns.lines[c] or {}
  if turns.is_read[c] or line[turns.taken[c] + 2] then return line end
  local most = #line + share
  local more = redis.call("LRANGE", turns.lanes[c], #line, #line + most)
  turns.is_read[c] = #more <= most
  if #line == 0 then line = more else for _, id in ipairs(more) do line[#line + 1] = id end end
  turns.lines[c] = line
  return line
end

-- The turn of a client that has had one and gets `n` jobs more: behind as many of each other client. Who is alone has nobody
-- to wait for.
local function turn_behind(q, band, client, turn, n)
  if not q.has_weights then
    local others = redis.call("ZCOUNT", q.ring .. band, "-inf", "(inf") - 1
    return others > 0 and turn + n * others + 0.5 or redis.call("INCR", q.turn)
  end
  local share, _, clients = read_shares(q, { client })[1], first_turns(q.ring .. band, 1)
  return turn + n * (q.has_times and estimate(share) or clients) * share.stride
end

-- The first clients of a band and their turns, and how many clients have one.
local function open_turns(q, band, wanted)
  place_clients(q, band, redis.call("ZRANGEBYSCORE", q.ring .. band, NEWCOMERS, "(inf", "LIMIT", 0, 500), "XX")
  local found, n = first_turns(q.ring .. band, q.aside and wanted + q.aside.n or wanted)
  if q.aside then leave_aside(q, found, 2) end
  local turns = { clients = {}, at = {}, lanes = {}, lines = {}, is_read = {}, taken = {}, blocked = {} }
  turns.ids, turns.owners, turns.stays, turns.scores = {}, {}, {}, {}
  for c = 1, #found / 2 do
    local client = found[2 * c - 1]
    turns.clients[c], turns.at[c] = client, tonumber(found[2 * c])
    turns.lanes[c], turns.taken[c] = q.lane .. band .. ":" .. client, 0
  end
  return turns, n
end

-- Collect the jobs of the next turns of a band, as if each job were claimed alone.
local function take_virtual_turns(q, band, claim)
  local turns, n = open_turns(q, band, claim.wanted)
  local clients, at, ids, heap, m = turns.clients, turns.at, turns.ids, {}, 0
  local has_skips, per_client = q.has_cancelled_in_lane or q.pauses, math.ceil(claim.wanted / #clients)
  local rooms, shares = read_rooms(q, clients), read_shares(q, clients)
  turns.rooms = rooms
  for c = 1, #clients do heap[c] = c end
  while heap[1] and m < claim.wanted do
    local c = heap[1]
    local client, share, taken, stays = clients[c], shares[c], turns.taken[c], true
    local late = q.has_times and charge_of(share, q.now) >= share.charged + 1 -- its running jobs take longer than was thought
    if late then
      at[c] = at[c] + charge(q, share, 0)
      write_used(q, share)
    else
      if has_skips and not turns.lines[c] then skip_first(q, claim, band .. ":" .. client) end
      local id = read_line(turns, c, per_client)[taken + 1]
      if id and has_skips and is_to_skip(q, id) then break end
      stays = id and taken < rooms[c]
      if stays then
        turns.is_stopped = q.has_crashes and not may_join(q, claim, id, m)
        if turns.is_stopped then break end
        m, turns.taken[c] = m + 1, taken + 1
        ids[m], turns.owners[m] = id, client
        at[c] = at[c] + (q.has_times and estimate(share) or n) * share.stride
      elseif id then
        block(q, band, client)
        if q.has_times then
          share.turn = at[c]
          write_used(q, share)
          redis.call("HSET", q.job_times, "turn:" .. band, string.format("%.17g", share.turn))
        end
        turns.blocked[c] = true
      end
      turns.stays[c] = stays
    end
    sift(turns, heap, stays and c or table.remove(heap))
    if not stays then n = n - 1 end
    if c == claim.wanted then break end -- clients that were not read may come before the others
  end
  for c = 1, #clients do
    local turn = at[c] % 1 == 0 and string.format("%d", at[c]) or at[c] -- Redis needs longer for that
    turns.scores[clients[c]], turns.lines[c] = turn, turns.lines[c] or { true } -- those whose turn has not come have jobs
  end
  return turns
end
