-- client_state: the jobs of one client in a queue, and its limits. Reads only.
-- uses: prelude waiting
-- keys: bands lanes clock lane limits limit_sources running_counts blocked scheduled_by_client
-- ARGV[1] client      its name
--
-- returns {now, queued, since when the first waits, scheduled and retrying, running, its limits, what of them was set at
--         run time, the limits of each client, the same of these, its pause, 1 if it is blocked}; "" where there is none;
--         running jobs are counted while there are limits
-- sent twice: changes nothing

local q, client = named(), ARGV[1]
local queued, since = 0, ""

for _, band in ipairs(bands_of(q, client)) do
  local lane = band .. ":" .. client
  local head = redis.call("ZSCORE", q.lanes, lane)
  queued = queued + redis.call("LLEN", q.lane .. lane)
  if head and (since == "" or tonumber(head) < tonumber(since)) then since = head end
end
local own = "client:" .. client
local limits = redis.call("HMGET", q.limits, own, "clients", "paused:" .. client)
local sources = redis.call("HMGET", q.limit_sources, "run:" .. own, "run:clients")
return {
  now_ms(q.clock), queued, since, redis.call("ZCARD", q.scheduled_by_client .. ":" .. client),
  redis.call("HGET", q.running_counts, own) or "", limits[1] or "", sources[1] or "", limits[2] or "", sources[2] or "",
  limits[3] or "", redis.call("HEXISTS", q.blocked, client) == 1 and 1 or "",
}
