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

-- Add the counters of past periods, since the one that `field` names: at first none. Returns whether all of them are added.
local function add_past(counters, field, present, kept, most)
  local added = tonumber(redis.call("HGET", q.totals, field) or present)
  local from = math.max(added, present - kept)
  local ends = math.min(from + most, present) -- the clock may have been put back
  for period = from, ends - 1 do
    local past = redis.call("HGETALL", counters .. string.format("%.0f", period))
    for i = 1, #past, 2 do
      if has_room(q.totals, past[i]) then redis.call("HINCRBY", q.totals, past[i], past[i + 1]) end
    end
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
