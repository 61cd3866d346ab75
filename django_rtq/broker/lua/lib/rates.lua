-- rates: how many jobs a queue, and each of its clients, may start in a time.
-- The generic cell rate algorithm (GCRA) in its form of virtual scheduling, ITU-T Recommendation I.371 (03/2004), Annex A:
-- it keeps one number, the theoretical arrival time. Each start moves it on by the interval between two starts, and it is
-- never before the present. A job may start if it is less than `burst` intervals ahead.
-- Members of `rate_times` and `next_starts` are "queue" and "client:<name>".
-- created when first called
-- uses: prelude

local EARLIEST_MS = 5 -- a rate with shorter intervals is waited for at least so long, and then several jobs start

-- The rate in these values of limits: ms between two starts, and how many may start at once; nil: none. The default is
-- what may start in a tenth of a second.
local function rate_of(values)
  local starts, period = string.match(string.match(values, " rate=(%S+)") or "", "^(%d+)/(%d+)$")
  if not starts then return end
  return period / starts, tonumber(string.match(values, " burst=(%S+)")) or math.max(1, math.floor(100 * starts / period))
end

-- Read the rates of members from the values of their limits, and how many jobs each may start now. They are in `q.rates`
-- from then on. A time that is further ahead than the rate allows was written when the rate was lower.
local function read_rates(q, members, values)
  local asked, rates, text, interval, burst = {}, q.rates or {}, nil, nil, nil
  q.rates = rates
  for i, member in ipairs(members) do
    if values[i] ~= text then -- mostly the same for all
      text = values[i]
      interval, burst = rate_of(text)
    end
    rates[member] = interval and { interval = interval, burst = burst, is_cut = false, arrival = 0, room = 0 }
    if interval then asked[#asked + 1] = member end
  end
  if #asked == 0 then return end
  q.now = q.now or now_ms(q.clock)
  for i, arrival in ipairs(redis.call("ZMSCORE", q.rate_times, unpack(asked))) do
    local rate = rates[asked[i]]
    local latest = q.now + rate.burst * rate.interval
    arrival = math.max(q.now, arrival or 0)
    rate.is_cut, rate.arrival = arrival > latest, math.min(arrival, latest)
    rate.room = math.floor(rate.burst - (rate.arrival - q.now) / rate.interval + 1e-6)
  end
end

-- When a member that is out of its rate may start a job again, ms.
local function next_start(q, rate)
  local moment = math.ceil(rate.arrival - (rate.burst - 1) * rate.interval)
  if rate.interval < EARLIEST_MS then moment = math.max(moment, math.min(q.now + EARLIEST_MS, math.ceil(rate.arrival))) end
  return math.max(q.now + 1, moment)
end

-- Note when a member may start a job again. Signals schedulers if that is before all others.
local function wait_for_rate(q, member, moment)
  local rate = q.rates[member]
  if rate.is_cut then redis.call("ZADD", q.rate_times, rate.arrival, member) end
  local first = redis.call("ZRANGE", q.next_starts, "0", "0", "WITHSCORES")[2]
  redis.call("ZADD", q.next_starts, moment, member)
  if moment < tonumber(first or math.huge) then redis.call("ZADD", q.due_signal, "0", "due") end
end

-- Remove times that are over: they say nothing. `kept` of them may stay.
local function remove_past(q, most, kept)
  if redis.call("ZCARD", q.rate_times) <= kept then return end
  local past = redis.call("ZRANGEBYSCORE", q.rate_times, "-inf", q.now, "LIMIT", "0", most)
  if #past > 0 then redis.call("ZREM", q.rate_times, unpack(past)) end
end

-- Jobs start: the rates that were read move on. -1 as `sign`: these jobs were claimed, and did not start.
local function use_rates(q, owners, total, sign)
  local moments = {}
  local function move(member, n)
    local rate = q.rates[member]
    if not rate then return end
    rate.arrival = rate.arrival + sign * n * rate.interval
    moments[#moments + 1], moments[#moments + 2] = rate.arrival, member
  end
  for _, client in ipairs(owners) do move("client:" .. client, owners[client]) end
  move("queue", total)
  if #moments == 0 then return end
  redis.call("ZADD", q.rate_times, unpack(moments))
  remove_past(q, 100, 10000) -- the scheduler removes all
end
