-- set_limits: change the limits of a queue and its clients. Pausing a client is a limit, too. Clients that are blocked stay
-- so until check_blocked, or until one of their jobs ends.
-- uses: limit_sources
-- keys: limits waiting_limits limit_sources paused_clients running_counts blocked bands work_signal scratch jobs signed_on
--       running_of turn ring rate_times next_starts job_times clock
-- ARGV[...] entries   field of `limit_sources` and a change in turn: "name=value ..." sets values, "name=" removes one, ""
--                     all. "run:<field of limits>" was set at run time, and wins over "settings:<field of limits>"
--
-- returns the number of blocked clients
-- sent twice: nothing changes the second time

local q, entries = named(), ARGV

-- The text of a source after a change. A pause is one text.
local function changed(text, source, change)
  if change == "" or string.find(source, "run:paused:", 1, true) == 1 then return change end
  text = " " .. (text or "")
  for name, value in string.gmatch(change, "([%l_]+)=(%S*)") do
    text = string.gsub(text, " " .. name .. "=%S*", "")
    if value ~= "" then text = text .. " " .. name .. "=" .. value end
  end
  return (string.gsub(text, "^ +", ""))
end

redis.call("DEL", q.scratch) -- lets a full server be drained
local changes = begin_changes(q)
for i = 1, #entries, 2 do
  local source = entries[i]
  set_source(q, changes, source, changed(redis.call("HGET", q.limit_sources, source), source, entries[i + 1]))
end
end_changes(q, changes)
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
return redis.call("HLEN", q.blocked)
