-- weights: turns by the weights of clients, where there are any: stride scheduling (C. Waldspurger and W. Weihl, Stride
-- Scheduling: Deterministic Proportional-Share Resource Management, MIT/LCS/TM-528, 1995).
-- Each job moves the turn of its client on by N * stride: N clients take turns, and a stride is the default weight divided
-- by that of the client. A client that enters the ring gets a number from `turn`, as in other queues. While there are
-- weights, these numbers are greater than all turns, and the next claim changes them into turns.
-- created when first called
-- uses: limits

local NEWCOMERS = "1e15" -- from here on, a turn is only a number in the order of arrival
local FIRST_NEWCOMER = "2000000000000000" -- so far beyond that a job which is given back may come before it

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

-- The strides of these clients.
local function read_strides(q, clients)
  local strides, weights = {}, read_weights(q, clients)
  local default = weights[0]
  for i, weight in ipairs(weights) do strides[i] = default / weight end
  return strides
end

-- Give clients turns at the end of a ring; the greater their weight, the nearer to its first.
local function place_clients(q, ring, clients, condition, first, n)
  if #clients == 0 then return end
  local places = {}
  for i, stride in ipairs(read_strides(q, clients)) do
    places[2 * i - 1], places[2 * i] = (first or 0) + (n + i - 1) * stride, clients[i]
  end
  redis.call("ZADD", ring, condition, unpack(places))
end

-- Who has entered a ring, and has no turn yet.
local function newcomers_of(ring)
  return redis.call("ZRANGEBYSCORE", ring, NEWCOMERS, "(inf", "LIMIT", 0, 500)
end

-- Whether a score of a ring is a turn.
local function is_turn(score)
  return tonumber(score) < tonumber(NEWCOMERS)
end

-- Give turns to those who have entered the ring.
local function place_newcomers(q, ring)
  local newcomers = newcomers_of(ring)
  if #newcomers == 0 then return end
  local first, n = first_turns(ring, 1)
  place_clients(q, ring, newcomers, "XX", first[2], n)
end

-- After a change of weights, those beyond the end of the ring have no later turn than they would have if they came now.
local function pull_back(q)
  for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, -1)) do
    local ring = q.ring .. band
    local first, n = first_turns(ring, 1)
    local last = string.format("(%.17g", (first[2] or 0) + n)
    place_clients(q, ring, redis.call("ZRANGEBYSCORE", ring, last, "(" .. NEWCOMERS, "LIMIT", 0, 500), "LT", first[2], n)
  end
end
