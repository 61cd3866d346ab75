-- set_limits: change the limits of a queue and its clients. Pausing a client is a limit, too. Or store those of the settings of
-- a worker or producer, unless other settings were stored since it read them. Clients that are blocked stay so until
-- check_blocked, or until one of their jobs ends.
-- uses: prelude running_counts limits virtual_turns
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
local weights, has_new_weights = 0, false -- by how many the fields with weights change, and whether any weight does

local function has_times()
  return has_time_turns(values_of(redis.call("HGET", q.limits, "queue")))
end

-- Whether these values have a weight: 1 or 0.
local function count_weight(values)
  return string.find(" " .. (values or ""), " weight=", 1, true) and 1 or 0
end

local function set_or_delete(key, field, value)
  if value == "" then redis.call("HDEL", key, field) else redis.call("HSET", key, field, value) end
end

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

-- Set the text of a source, and then what holds: what was set at run time comes first, then the settings.
local function set_source(source, value)
  local field, texts = string.match(source, "^%l+:(.*)$"), {}
  set_or_delete(q.limit_sources, source, value)
  local sources = redis.call("HMGET", q.limit_sources, "run:" .. field, "settings:" .. field)
  for i = 1, 2 do texts[#texts + 1] = sources[i] or nil end
  local text, paused = table.concat(texts, " "), string.match(field, "^paused:(.*)$")
  if paused then -- the index of paused clients is for people: it is never without one that is paused
    local since = string.match(text, "^%d+")
    if since then redis.call("ZADD", q.paused_clients, since, paused) end
    set_or_delete(q.limits, field, text)
    if not since then redis.call("ZREM", q.paused_clients, paused) end
    return
  end
  if field == "clients" or string.find(field, "client:", 1, true) == 1 then
    local before, after = count_weight(redis.call("HGET", q.limits, field)), count_weight(text)
    weights = weights + after - before
    has_new_weights = has_new_weights or before + after > 0
    if after == 1 then mark_newcomers(q) end
  end
  set_or_delete(q.limits, field, text)
  -- enqueue asks whether there are any
  set_or_delete(q.waiting_limits, field, string.match(" " .. text, " max_waiting=(%S+)") or "")
end

if stored ~= expected and stored ~= stamp then return -1 end
local was_timed = has_times()
for i = 3, #entries, 2 do
  local source = entries[i]
  set_source(source, changed(redis.call("HGET", q.limit_sources, source), source, entries[i + 1]))
end
if stamp == "" or #entries > 2 then
  local sum = weights ~= 0 and redis.call("HINCRBY", q.limits, "weights", weights) -- claims ask whether any field has one
  if sum and sum <= 0 then redis.call("HDEL", q.limits, "weights") end
  local is_timed = has_times()
  if is_timed then mark_newcomers(q) else redis.call("DEL", q.job_times) end
  -- Whoever waits comes anew when turns begin or end to go by time. Otherwise new weights make nobody wait for an old turn.
  local is_other = is_timed ~= was_timed
  if is_other or (is_timed and has_new_weights) then come_anew(q) elseif has_new_weights then pull_back(q) end
  local fields = redis.call("HLEN", q.limits)
  if fields > 32 then use_table(q.limits) end
  if fields > 0 then recount(q) else redis.call("DEL", q.running_counts, q.rate_times, q.next_starts) end
end
if stamp ~= "" then redis.call("SET", q.settings_stamp, stamp) end -- last: after a torn log it is written again
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
return redis.call("HLEN", q.blocked)
