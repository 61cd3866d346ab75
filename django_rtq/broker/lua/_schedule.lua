-- _schedule: jobs that wait for their time.

-- Let jobs wait. `entries` is due and id in turn. Wakes a scheduler when one is due earlier than all before.
local function schedule(q, entries)
  local next_due = tonumber(redis.call("ZRANGE", q.scheduled, 0, 0, "WITHSCORES")[2] or math.huge)
  redis.call("ZADD", q.scheduled, unpack(entries))
  for i = 1, #entries, 2 do
    if entries[i] < next_due then redis.call("ZADD", q.due, 0, "due") end
  end
end
