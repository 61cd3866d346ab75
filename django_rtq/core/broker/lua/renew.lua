-- renew: extend the leases of live workers in all their queues, and find out whether this supervisor has to tend a queue:
-- one of many does in each `pause_ms`, and whoever comes first when a lease has ended.
-- uses: prelude workers known_ids runners
-- ARGV[1] lease_ms    how long the leases last from now on
-- ARGV[2] tends       "tended": it may tend queues; "checked": the same, but it promotes nothing; "": it does not
-- ARGV[3] pause_ms    how long a queue may have been left alone
-- ARGV[...] names     the workers of one supervisor
--
-- returns an entry for each queue: {ms until the earliest lease of any worker ends, or -1; unknown names: workers that were
--         considered dead; of their jobs that were asked to stop: worker, id, "ask" or "terminate"; 1 if promote has
--         something to do, else 0; where repair_lanes has to go on, or -1}. Who does not tend it gets -1, 0 and -1
-- sent twice: the leases are a little longer; the second time it may not have to tend a queue, which waits for the next

local lease_ms, tends, pause_ms, tags = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), KEYS
local names = { select(4, unpack(ARGV)) }
local AT_ONCE = 500

-- Leases until `ends`. Returns the names that are not signed on. Not by ZADD alone: its reply is the same for an unknown worker
-- and one whose lease was renewed in this millisecond.
local renewed, renewed_until = {}, nil
local function renew_leases(q, ends)
  if ends ~= renewed_until then
    renewed_until = ends
    local deadline = string.format("%.0f", ends)
    for i, name in ipairs(names) do renewed[2 * i - 1], renewed[2 * i] = deadline, name end
  end
  if #names == 0 or redis.call("ZADD", q.workers, "XX", "CH", unpack(renewed)) == #names then return {} end
  local unknown = {}
  for i, lease in ipairs(redis.call("ZMSCORE", q.workers, unpack(names))) do
    if not lease then unknown[#unknown + 1] = names[i] end
  end
  return unknown
end

-- Look up the running jobs in `cancel_requests`, not the other way round: there may be many more requests.
local function find_asked(q)
  local asked = {}
  if redis.call("EXISTS", q.cancel_requests) == 0 then return asked end
  for _, name in ipairs(names) do
    local ids = redis.call("HKEYS", q.running_of .. name)
    for first = 1, #ids, AT_ONCE do
      local requests = redis.call("HMGET", q.cancel_requests, unpack(ids, first, math.min(first + AT_ONCE - 1, #ids)))
      for i, request in ipairs(requests) do
        if request then
          asked[#asked + 1], asked[#asked + 2] = name, ids[first + i - 1]
          asked[#asked + 1] = string.match(request, "^%a+")
        end
      end
    end
  end
  return asked
end

-- Whether promote has anything to do: also with clients that wait for their rate, and pauses of tasks that are over.
local function has_due(q, now)
  return redis.call("EXISTS", q.rate_times, q.next_starts, q.paused) > 0
    or redis.call("ZCOUNT", q.scheduled, "-inf", now) > 0
    or redis.call("ZCOUNT", q.scheduled_by_client, "-inf", now) > 0
end

-- Whether repair_lanes has anything to do. The rest of a queue without work cannot be bent, or waits until there is some.
local function has_repairs(q, now)
  local workers = redis.call("ZCARD", q.signed_on)
  if workers > MANY_WORKERS or workers ~= redis.call("ZCARD", q.workers) then return true end
  if redis.call("EXISTS", q.lanes, q.runners, q.running_counts, q.blocked) > 0 then return true end
  local counted, lost = unpack(redis.call("HMGET", q.clock, "counted", "lost"))
  if not lost and redis.call("EXISTS", q.jobs) == 0 then return false end
  local age = now - (counted or 0)
  return age >= lease_ms or age < 0 or redis.call("EXISTS", q.limits) == 1
end

-- Tend a queue. Returns the entry for it.
local function tend(q)
  local now = record_contact(q, lease_ms)
  rotate_ids(q, now)
  local unknown = renew_leases(q, now + lease_ms)
  local first_end = redis.call("ZRANGE", q.workers, 0, 0, "WITHSCORES")[2]
  redis.call("HSET", q.clock, tends, now, "first_end", first_end or now + lease_ms)
  local promotes = tends == "tended"
  if promotes then redis.call("HSET", q.clock, "promoted", now) end -- for people: shows that a scheduler is alive
  return {
    first_end and math.max(0, first_end - now) or -1,
    unknown,
    find_asked(q),
    promotes and has_due(q, now) and 1 or 0,
    has_repairs(q, now) and tonumber(redis.call("HGET", q.clock, "repaired") or 0) or -1,
  }
end

local answer, clock = {}, clock_ms()
for place = 1, #tags do
  if string.sub(tags[place], -2) == "::" then break end -- in a Cluster, a name that never exists
  local q = named(place)
  local high, looked, first_end = unpack(redis.call("HMGET", q.clock, "high", tends, "first_end"))
  local now = now_ms(q.clock, clock, high)
  local age = now - (looked or 0)
  if tends ~= "" and (age >= pause_ms or age < 0 or now >= tonumber(first_end or 0)) then
    answer[place] = tend(q)
  else
    answer[place] = { -1, renew_leases(q, now + lease_ms), find_asked(q), 0, -1 }
  end
end
return answer
