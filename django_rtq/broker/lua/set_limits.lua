-- set_limits: change the limits of a queue and its clients. Pausing a client is a limit, too. Clients that are blocked stay
-- so until check_blocked, or until one of their jobs ends.
-- uses: recount weights limits
-- keys: limits waiting_limits limit_sources running_counts blocked bands work_signal scratch jobs signed_on
--       running_of turn ring rate_times next_starts job_times clock
-- ARGV[...] entries   field of `limit_sources` and a change in turn: "name=value ..." sets values, "name=" removes one, ""
--                     all. "run:<field of limits>" was set at run time, and wins over "settings:<field of limits>"
--
-- returns the number of blocked clients
-- sent twice: nothing changes the second time

local q, entries = named(), ARGV
local was_timed = has_time_turns(values_of(redis.call("HGET", q.limits, "queue")))
local weights, has_new_weights = 0, false -- by how many the fields with weights change, and whether any changes

-- Whether these values have a weight: 1 or 0.
local function count_weight(values)
  return string.find(" " .. (values or ""), " weight=", 1, true) and 1 or 0
end

-- Note how many more fields of `limits` have a weight now. Claims ask whether any has.
local function add_weights(n)
  if redis.call("HINCRBY", q.limits, "weights", n) <= 0 then redis.call("HDEL", q.limits, "weights") end
end

local function set(key, field, value)
  if value == "" then redis.call("HDEL", key, field) else redis.call("HSET", key, field, value) end
end

-- Set a field of `limits`.
local function set_limit(field, values)
  if field == "clients" or string.find(field, "client:", 1, true) == 1 then
    local before, after = count_weight(redis.call("HGET", q.limits, field)), count_weight(values)
    weights, has_new_weights = weights + after - before, has_new_weights or before + after > 0
    if after == 1 then mark_newcomers(q) end
  end
  set(q.limits, field, values)
end

-- The text of a source after a change. A pause is one text.
local function changed(text, field, change)
  if change == "" or string.find(field, "paused:", 1, true) == 1 then return change end
  text = " " .. (text or "")
  for name, value in string.gmatch(change, "([%l_]+)=(%S*)") do
    text = string.gsub(text, " " .. name .. "=%S*", "")
    if value ~= "" then text = text .. " " .. name .. "=" .. value end
  end
  return (string.gsub(text, "^ +", ""))
end

redis.call("DEL", q.scratch) -- lets a full server be drained
for i = 1, #entries, 2 do
  local source, field = entries[i], string.match(entries[i], "^%l+:(.*)$")
  set(q.limit_sources, source, changed(redis.call("HGET", q.limit_sources, source), field, entries[i + 1]))
  local sources = redis.call("HMGET", q.limit_sources, "run:" .. field, "settings:" .. field)
  local both = sources[1] and sources[2] and sources[1] .. " " .. sources[2]
  local text = both or sources[1] or sources[2] or ""
  set_limit(field, text)
  if string.find(field, "paused:", 1, true) ~= 1 then -- enqueue asks whether there are any
    set(q.waiting_limits, field, string.match(" " .. text, " max_waiting=(%S+)") or "")
  end
end
if weights ~= 0 then add_weights(weights) end
local is_timed = has_time_turns(values_of(redis.call("HGET", q.limits, "queue")))
if is_timed then mark_newcomers(q) else redis.call("DEL", q.job_times) end
if is_timed ~= was_timed or (is_timed and has_new_weights) then come_anew(q) elseif has_new_weights then pull_back(q) end
if redis.call("EXISTS", q.limits) == 1 then recount(q) else redis.call("DEL", q.running_counts, q.rate_times, q.next_starts) end
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
return redis.call("HLEN", q.blocked)
