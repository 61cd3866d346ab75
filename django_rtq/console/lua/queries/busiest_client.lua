-- busiest_client: the client with most run time in the last hour, while jobs of several clients wait. Reads only.
-- It looks at the first client of each ten minutes. A client that had most of the hour is among these.
-- uses: prelude metrics startable
-- returns {client, its µs, µs of all clients, for how many ms the oldest job of another waits that might start}; {} if
--         nothing ran, or if no such job waits
-- sent twice: changes nothing

local q, SLICES = named(), 6

if redis.call("ZCARD", q.lanes) < 2 then return {} end

local now = now_ms(q.clock)
local slice, found, total, busiest, most = math.floor(now / SLICE_MS), {}, 0, false, 0
for each = slice - SLICES + 1, slice do
  local name = string.format("%.0f", each)
  total = total + (redis.call("HGET", q.client_runs .. name, ALL_TIME) or 0)
  local first = redis.call("ZREVRANGE", q.client_time .. name, 0, 0)[1]
  if first then found[first] = 0 end
end
for client in pairs(found) do
  local us = 0
  for each = slice - SLICES + 1, slice do
    us = us + (redis.call("ZSCORE", q.client_time .. string.format("%.0f", each), client) or 0)
  end
  if us > most then busiest, most = client, us end
end
local since = busiest and oldest_startable(q, now, busiest)
return since and { busiest, most, total, math.max(0, now - since) } or {}
