-- client_states: some clients of a queue: their jobs, their limits, why they may not start a job, and their part of the
-- runs of the last ten minutes. Reads only.
-- uses: prelude limits recent_runs waiting
-- keys: bands ring lanes clock lane limits limit_sources running_counts rate_times blocked scheduled_by_client paused
--       client_runs client_time
-- ARGV[...] clients   their names, at most 50
--
-- returns {now, {limits of the queue, what of them was set at run time, the limits of each client, the same of these},
--         {since when the queue is paused, its running jobs, when it may start one if only its rate stops it, runs of
--         the last ten minutes, their µs},
--         of each client: {queued, since when the first waits, scheduled and retrying, running, its limits, what of them
--         was set at run time, its pause, 1 if it is blocked, when it may start a job if only its rate stops it, its parts
--         of all runs, of their time, and of the weights of all clients that had work, in billionths}}; "" where there is
--         none; running jobs are counted while there are limits
-- sent twice: changes nothing

local q, clients, BILLION = named(), ARGV, 1000000000
local now = now_ms(q.clock)
local slices = recent_slices(q, now)
local all_runs, all_us = recent_totals(slices)
local bands, weights = redis.call("ZRANGE", q.bands, 0, 99), weights_of(q, clients)
local all_weights = #clients > 0 and all_runs > 0 and active_weight(q, slices, bands) or 0

local function part_of(one, all)
  return all > 0 and one and math.min(BILLION, math.floor(one / all * BILLION + 0.5)) or ""
end

-- How many jobs wait in its lanes, and since when the first of them.
local function queued_of(client)
  local queued, since = 0, ""
  for _, band in ipairs(bands_of(q, client)) do
    local lane = band .. ":" .. client
    local head = redis.call("ZSCORE", q.lanes, lane)
    queued = queued + redis.call("LLEN", q.lane .. lane)
    if head and (since == "" or tonumber(head) < tonumber(since)) then since = head end
  end
  return queued, since
end

local function state_of(client, weight, moment)
  local own = "client:" .. client
  local queued, since = queued_of(client)
  local runs, us = recent_runs(slices, client)
  local part = all_weights > 0 and active_part(q, slices, bands, client) or 0
  return {
    queued, since, redis.call("ZCARD", q.scheduled_by_client .. ":" .. client),
    redis.call("HGET", q.running_counts, own) or "", redis.call("HGET", q.limits, own) or "",
    redis.call("HGET", q.limit_sources, "run:" .. own) or "", redis.call("HGET", q.limits, "paused:" .. client) or "",
    redis.call("HEXISTS", q.blocked, client) == 1 and 1 or "", moment or "",
    part_of(runs, all_runs), part_of(us, all_us), part_of(part > 0 and part * weight, all_weights),
  }
end

local limits = redis.call("HMGET", q.limits, "queue", "clients")
local sources = redis.call("HMGET", q.limit_sources, "run:queue", "run:clients")
local _, queue_moment = queue_room(q)
local _, moments = read_rooms(q, clients)
local answer = {
  now, { limits[1] or "", sources[1] or "", limits[2] or "", sources[2] or "" },
  { redis.call("HGET", q.paused, "queue") or "", redis.call("HGET", q.running_counts, "queue") or "", queue_moment or "",
    math.floor(all_runs + 0.5), math.floor(all_us + 0.5) },
}
for i, client in ipairs(clients) do answer[i + 3] = state_of(client, weights[i], moments[i]) end
return answer
