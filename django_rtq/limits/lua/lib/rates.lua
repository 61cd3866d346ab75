-- rates: how many jobs a queue, and each of its clients, may start in a time.
-- The generic cell rate algorithm (GCRA) in its form of virtual scheduling, ITU-T Recommendation I.371 (03/2004), Annex A:
-- it keeps one number, the theoretical arrival time. Each start moves it on by the interval between two starts, and it is
-- never before the present. A job may start if it is less than `burst` intervals ahead.
-- Members of `rate_times` and `next_starts` are "queue" and "client:<name>".
-- created when first called
-- uses: prelude

local EARLIEST_MS = 5 -- a rate with shorter intervals is waited for at least so long, and then several jobs start

-- A value in the values "name=value" of limits, which has a space in front; nil: none. The first of a name holds.
local function value_of(values, name)
  local _, at = string.find(values, " " .. name .. "=", 1, true)
  return at and string.match(values, "^%S+", at + 1)
end

-- The same of a number.
local function limit_of(values, name)
  return tonumber(value_of(values, name) or "")
end

-- The rate in these values: ms between two starts, and how many may start at once, by default what may start in a tenth of a
-- second; nil: none.
local function rate_of(values)
  local starts, period = string.match(value_of(values, "rate") or "", "^(%d+)/(%d+)$")
  if not starts then return end
  local burst = limit_of(values, "burst") or math.max(1, math.floor(100 * starts / period))
  return { interval = period / starts, burst = burst }
end

-- How far ahead a time may be.
local function latest_arrival(q, rate)
  return q.now + rate.burst * rate.interval
end

-- The members of these clients.
local function members_of(clients)
  local members = {}
  for i = 1, #clients do members[i] = "client:" .. clients[i] end
  return members
end

-- The times of these members that are ahead of the present. If others are fewer than these, all that are ahead are read.
local function read_arrivals(q, members)
  local times, ahead = {}, "(" .. q.now
  if #members > 8 and redis.call("ZCOUNT", q.rate_times, ahead, "+inf") < #members then
    local found = redis.call("ZRANGEBYSCORE", q.rate_times, ahead, "+inf", "WITHSCORES")
    for i = 1, #found, 2 do times[found[i]] = tonumber(found[i + 1]) end
    return times
  end
  for i, time in ipairs(redis.call("ZMSCORE", q.rate_times, unpack(members))) do
    if time and tonumber(time) > q.now then times[members[i]] = tonumber(time) end
  end
  return times
end

-- Read the times of the members that have a rate in their limits. Rates and times that are ahead of the present are in
-- `q.rates` and `q.times_ahead` from then on. A time that is further ahead than the rate allows was written when the rate was
-- lower.
local function read_rates(q, members, limits)
  local rates, arrivals, asked, n = q.rates or {}, q.times_ahead or {}, {}, 0
  q.rates, q.times_ahead = rates, arrivals
  for i = 1, #members do
    local member, rate = members[i], limits[i].rate
    if rate then
      n = n + 1
      asked[n] = member
    end
    if rate or rates[member] then rates[member] = rate end
  end
  if n == 0 then return end
  q.now = q.now or now_ms(q.clock)
  local times = read_arrivals(q, asked)
  for i = 1, n do
    local member = asked[i]
    local time = times[member]
    if time or arrivals[member] then arrivals[member] = time and math.min(time, latest_arrival(q, rates[member])) end
  end
end

-- How many jobs a member may start now by its rate.
local function rate_room(q, member)
  local rate, arrival = q.rates[member], q.times_ahead[member]
  return arrival and math.floor(rate.burst - (arrival - q.now) / rate.interval + 1e-6) or rate.burst
end

-- When a member that is out of its rate may start a job again, ms.
local function next_start(q, member)
  local rate, arrival = q.rates[member], q.times_ahead[member]
  local moment = math.ceil(arrival - (rate.burst - 1) * rate.interval)
  if rate.interval < EARLIEST_MS then moment = math.max(moment, math.min(q.now + EARLIEST_MS, math.ceil(arrival))) end
  return math.max(q.now + 1, moment)
end

-- Note when a member may start a job again. Signals schedulers if that is before all others.
local function wait_for_rate(q, member, moment)
  local arrival = q.times_ahead[member]
  if arrival >= latest_arrival(q, q.rates[member]) then redis.call("ZADD", q.rate_times, arrival, member) end -- it may be cut
  local first = redis.call("ZRANGE", q.next_starts, "0", "0", "WITHSCORES")[2]
  redis.call("ZADD", q.next_starts, moment, member)
  if moment < tonumber(first or math.huge) then redis.call("ZADD", q.due_signal, "0", "due") end
end

-- Remove times that are over: they say nothing.
local function remove_past(q, most)
  local past = math.min(most, redis.call("ZCOUNT", q.rate_times, "-inf", tostring(q.now)))
  if past > 0 then redis.call("ZREMRANGEBYRANK", q.rate_times, "0", past - 1) end
end

-- Jobs start: the times of the members with a rate move on. -1 as `sign`: these jobs were claimed, and did not start.
-- A time is written as exact as it is: floating-point numbers between 2^40 and 2^41 are 0.0002 apart. Redis would need longer.
local function use_rates(q, owners, members, total, sign)
  local rates, arrivals, now, moments, m = q.rates, q.times_ahead, q.now, {}, 0
  if not next(rates) then return end
  for i = 0, #members do
    local member = i > 0 and members[i] or "queue"
    local rate = rates[member]
    if rate then
      local arrival = (arrivals[member] or now) + sign * (owners[owners[i]] or total) * rate.interval
      moments[m + 1], moments[m + 2] = string.format("%d.%04d", arrival, arrival % 1 * 10000), member
      m, arrivals[member] = m + 2, arrival
    end
  end
  if m == 0 then return end
  remove_past(q, 500)
  add_entries(q.rate_times, moments)
end
