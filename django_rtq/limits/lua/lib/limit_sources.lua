-- limit_sources: what the sources of limits say, and what holds: what was set at run time comes first, then the settings.
-- created when first called
-- uses: prelude recount limits virtual_turns

-- Begin changes of limits: by how many the fields with weights change, and whether any weight does.
local function begin_changes(q)
  local was_timed = has_time_turns(values_of(redis.call("HGET", q.limits, "queue")))
  return { weights = 0, has_new_weights = false, was_timed = was_timed }
end

-- Whether these values have a weight: 1 or 0.
local function count_weight(values)
  return string.find(" " .. (values or ""), " weight=", 1, true) and 1 or 0
end

-- Note how many more fields of `limits` have a weight now. Claims ask whether any has.
local function add_weights(q, n)
  if redis.call("HINCRBY", q.limits, "weights", n) <= 0 then redis.call("HDEL", q.limits, "weights") end
end

local function set_or_delete(key, field, value)
  if value == "" then redis.call("HDEL", key, field) else redis.call("HSET", key, field, value) end
end

-- Set a pause of a client. The index of paused clients is for people: it is never without one that is paused.
local function set_pause(q, client, values)
  local since = string.match(values, "^%d+")
  if since then redis.call("ZADD", q.paused_clients, since, client) end
  set_or_delete(q.limits, "paused:" .. client, values)
  if not since then redis.call("ZREM", q.paused_clients, client) end
end

-- Set a field of `limits`.
local function set_limit(q, changes, field, values)
  if field == "clients" or string.find(field, "client:", 1, true) == 1 then
    local before, after = count_weight(redis.call("HGET", q.limits, field)), count_weight(values)
    changes.weights = changes.weights + after - before
    changes.has_new_weights = changes.has_new_weights or before + after > 0
    if after == 1 then mark_newcomers(q) end
  end
  set_or_delete(q.limits, field, values)
end

-- Set the text of a source.
local function set_source(q, changes, source, value)
  local field, texts = string.match(source, "^%l+:(.*)$"), {}
  set_or_delete(q.limit_sources, source, value)
  local sources = redis.call("HMGET", q.limit_sources, "run:" .. field, "settings:" .. field)
  for i = 1, 2 do texts[#texts + 1] = sources[i] or nil end
  local text, paused = table.concat(texts, " "), string.match(field, "^paused:(.*)$")
  if paused then return set_pause(q, paused, text) end
  set_limit(q, changes, field, text)
  -- enqueue asks whether there are any
  set_or_delete(q.waiting_limits, field, string.match(" " .. text, " max_waiting=(%S+)") or "")
end

-- Whoever waits comes anew when turns begin or end to go by time. Otherwise new weights make nobody wait for an old turn.
local function change_turns(q, changes)
  local is_timed = has_time_turns(values_of(redis.call("HGET", q.limits, "queue")))
  if is_timed then mark_newcomers(q) else redis.call("DEL", q.job_times) end
  local is_other = is_timed ~= changes.was_timed
  if is_other or (is_timed and changes.has_new_weights) then come_anew(q) elseif changes.has_new_weights then pull_back(q) end
end

-- End changes of limits.
local function end_changes(q, changes)
  if changes.weights ~= 0 then add_weights(q, changes.weights) end
  change_turns(q, changes)
  local fields = redis.call("HLEN", q.limits)
  if fields > 32 then use_table(q.limits) end
  if fields == 0 then
    redis.call("DEL", q.running_counts, q.rate_times, q.next_starts)
  else
    recount(q)
  end
end
