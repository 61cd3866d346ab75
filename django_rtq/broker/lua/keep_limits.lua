-- keep_limits: store what the function `limits_of` said of clients, and let them go on that may. Forgets what it said of
-- clients that no producer has met for long and that have no jobs.
-- uses: prelude limit_sources blocking waiting
-- keys: limits waiting_limits limit_sources paused_clients running_counts blocked bands work_signal scratch jobs signed_on
--       running_of turn ring rate_times next_starts job_times clock lane scheduled_by_client due_signal asked_limits
-- ARGV[1] idle_ms     for how long nobody has met a client that is forgotten
-- ARGV[...] entries   clients and their limits in turn: "name=value ...", or "" for none
--
-- returns the number of clients whose limits changed
-- sent twice: nothing changes the second time

local q, idle_ms, entries = named(), tonumber(ARGV[1]), ARGV
local FIRST_ENTRY, FORGOTTEN = 2, 10 -- how many are forgotten at once, beside one for each that is met
local now, changed = now_ms(q.clock), {}

local function keep(changes, client, text)
  local source = "limits_of:client:" .. client
  if (redis.call("HGET", q.limit_sources, source) or "") == text then return end
  set_source(q, changes, source, text)
  changed[#changed + 1] = client
end

local function has_jobs(client)
  return redis.call("HEXISTS", q.running_counts, "client:" .. client) == 1 or client_waiting(q, client) > 0
end

redis.call("DEL", q.scratch) -- lets a full server be drained
local changes, most = begin_changes(q), FORGOTTEN + #entries / 2
for i = FIRST_ENTRY, #entries, 2 do keep(changes, entries[i], entries[i + 1]) end
for i = FIRST_ENTRY, #entries, 2 do redis.call("ZADD", q.asked_limits, now, entries[i]) end
for _, client in ipairs(redis.call("ZRANGEBYSCORE", q.asked_limits, "-inf", now - idle_ms, "LIMIT", 0, math.floor(most))) do
  if has_jobs(client) then
    redis.call("ZADD", q.asked_limits, now, client) -- look again later
  else
    keep(changes, client, "")
    redis.call("ZREM", q.asked_limits, client)
  end
end
end_changes(q, changes, true)
for _, client in ipairs(changed) do unblock(q, client) end
if #changed > 0 and redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
return #changed
