-- schedule: jobs that wait for a time.
--
-- `scheduled_by_client` is an index of `scheduled`. No job depends on it: after a torn log, promote drops what is too much in
-- it, and promotes what is missing by its time alone.
-- created when first called
-- uses: prelude

-- Schedule a job. Signals schedulers if it is due earlier than all others. The client is written before its job, so that
-- promote finds all that is in the index.
local function schedule(q, client, due, id)
  local next_due = first_due(q)
  redis.call("ZADD", q.scheduled, due, id)
  redis.call("ZADD", q.scheduled_by_client, "LT", due, client)
  redis.call("ZADD", q.scheduled_by_client .. ":" .. client, due, id)
  if due < next_due then redis.call("ZADD", q.due_signal, 0, "due") end
end

-- Remove jobs of a client from the index.
local function remove_from_index(q, client, ids)
  redis.call("ZREM", q.scheduled_by_client .. ":" .. client, unpack(ids))
  if redis.call("EXISTS", q.scheduled_by_client .. ":" .. client) == 0 then redis.call("ZREM", q.scheduled_by_client, client) end
end

-- Remove jobs of a client from `scheduled` and the index.
local function unschedule(q, client, ids)
  remove_from_index(q, client, ids)
  redis.call("ZREM", q.scheduled, unpack(ids)) -- last: a torn log may cost a second run, not a job
end
