-- set_limits: change the limits of a queue and its clients. Pausing a client is a limit, too. Or store those of the settings of
-- a worker or producer, unless other settings were stored since it read them. Clients that are blocked stay so until
-- check_blocked, or until one of their jobs ends.
-- uses: limit_sources
-- ARGV[1] expected    of settings: what the caller has read in `settings_stamp`; "": nothing
-- ARGV[2] stamp       of settings: what it says from now on; "": this is a change
-- ARGV[...] entries   of each: field of `limit_sources`, text; of settings all that it says, "": nothing; of a change, "name=
--                     value ..." sets values, "name=" removes one, "" all. "run:<field of limits>" was set at run time, and
--                     wins over "settings:<field of limits>"
--
-- returns the number of blocked clients; -1: others have stored their settings, and nothing changes
-- sent twice: nothing changes the second time

local q, expected, stamp, entries = named(), ARGV[1], ARGV[2], ARGV
local stored = stamp ~= "" and redis.call("GET", q.settings_stamp) or ""

-- The text of a source after a change. A pause is one text, and so is what settings say.
local function changed(text, source, change)
  if change == "" or stamp ~= "" or string.find(source, "run:paused:", 1, true) == 1 then return change end
  text = " " .. (text or "")
  for name, value in string.gmatch(change, "([%l_]+)=(%S*)") do
    text = string.gsub(text, " " .. name .. "=%S*", "")
    if value ~= "" then text = text .. " " .. name .. "=" .. value end
  end
  return (string.gsub(text, "^ +", ""))
end

if stored ~= expected and stored ~= stamp then return -1 end
redis.call("DEL", q.scratch) -- lets a full server be drained
local changes = begin_changes(q)
for i = 3, #entries, 2 do
  local source = entries[i]
  set_source(q, changes, source, changed(redis.call("HGET", q.limit_sources, source), source, entries[i + 1]))
end
if stamp == "" or #entries > 2 then end_changes(q, changes) end
if stamp ~= "" then redis.call("SET", q.settings_stamp, stamp) end -- last: after a torn log it is written again
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
return redis.call("HLEN", q.blocked)
