-- update_totals: add the counters of past minutes and hours to totals, which do not expire.
-- uses: prelude metrics
--
-- returns {this minute, its counters: name, number, ...}. Whoever reads the totals behind this adds them if `minute`
--         there is this one: if it is earlier, some are left to add, and if it is later, others have added them.
-- sent twice: the second call adds nothing

local q = named()
local now = now_ms(q.clock)
local MINUTES, HOURS = 300, 2 -- added in one call
local MANY_NAMES = 3000 -- after so many no further minute or hour is added
local AT_ONCE = 1000 -- names in one command

-- Add counters: name, number, ... Beyond MOST_NAMES, new names are not added.
local function add_counters(past)
  for first = 0, #past - 1, 2 * AT_ONCE do
    local names, sums = {}, {}
    for i = first + 1, math.min(first + 2 * AT_ONCE, #past), 2 do names[#names + 1] = past[i] end
    local room = MOST_NAMES - redis.call("HLEN", q.totals)
    for k, sum in ipairs(redis.call("HMGET", q.totals, unpack(names))) do
      if not sum then room = room - 1 end
      if sum or room >= 0 then
        sums[#sums + 1] = names[k]
        sums[#sums + 1] = string.format("%.0f", (sum or 0) + past[first + 2 * k])
      end
    end
    if #sums > 0 then redis.call("HSET", q.totals, unpack(sums)) end
  end
end

-- Add the counters of past periods, since the one that `field` names: at first none.
local function add_past(counters, field, present, kept, most)
  local added = tonumber(redis.call("HGET", q.totals, field) or present)
  local from = math.max(added, present - kept)
  local most_ends = math.min(from + most, present) -- the clock may have been put back
  local ends, names = math.min(from, most_ends), 0
  while ends < most_ends and names < MANY_NAMES do
    local past = redis.call("HGETALL", counters .. string.format("%.0f", ends))
    add_counters(past)
    ends, names = ends + 1, names + #past / 2
  end
  redis.call("HSET", q.totals, field, string.format("%.0f", ends))
end

local minute, hour = math.floor(now / 60000), math.floor(now / HOUR_MS)
add_past(q.stats, "minute", minute, STATS_SECONDS / 60, MINUTES)
add_past(q.tasks, "hour", hour, TASKS_SECONDS / 3600, HOURS)
return { minute, redis.call("HGETALL", q.stats .. string.format("%.0f", minute)) }
