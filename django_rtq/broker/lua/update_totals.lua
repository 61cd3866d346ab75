-- update_totals: add the counters of past minutes and hours to totals, which do not expire, and return them.
-- uses: prelude metrics
-- keys: clock scratch stats tasks totals
--
-- returns {totals, counters of this minute, those of tasks in this hour, and whether this hour is to be added to the
--         totals: 1 or 0}; counters are lists of name, number, ...; those of this minute are empty, and this
--         hour is not to be added, while earlier minutes or hours are left to add, so that no sum goes back
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

-- Add the counters of past periods, since the one that `field` names: at first none. Returns whether all of them are added.
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
  return ends == present
end

redis.call("DEL", q.scratch) -- lets a full server be drained
local minute, hour = math.floor(now / 60000), math.floor(now / HOUR_MS)
local adds_minute = add_past(q.stats, "minute", minute, STATS_SECONDS / 60, MINUTES)
local adds_hour = add_past(q.tasks, "hour", hour, TASKS_SECONDS / 3600, HOURS)
return {
  redis.call("HGETALL", q.totals),
  adds_minute and redis.call("HGETALL", q.stats .. string.format("%.0f", minute)) or {},
  redis.call("HGETALL", q.tasks .. string.format("%.0f", hour)),
  adds_hour and 1 or 0,
}
