-- _schedule: jobs that wait for their time.
--
-- `scheduled` says which, and until when. Beside it `later` is an index by client, so that clients can take turns when
-- many jobs are due: the zset `later` + ":" + client has the client's ids with the same moments, and `later` itself
-- says when promote looks at a client next. Nothing rests on it: what a torn log left too much in it is dropped when
-- promote comes by, and what is missing is promoted by its time alone.

-- Let jobs wait: client -> due and id in turn. Wakes a scheduler when one is due earlier than all before.
local function schedule(q, of_clients)
  local next_due = tonumber(redis.call("ZRANGE", q.scheduled, 0, 0, "WITHSCORES")[2] or math.huge)
  local first_due = math.huge
  for client, entries in pairs(of_clients) do
    local earliest = math.huge
    for i = 1, #entries, 2 do earliest = math.min(earliest, entries[i]) end
    first_due = math.min(first_due, earliest)
    redis.call("ZADD", q.scheduled, unpack(entries))
    redis.call("ZADD", q.later, "LT", earliest, client) -- before its ids, so that promote finds all that there are
    redis.call("ZADD", q.later .. ":" .. client, unpack(entries))
  end
  if first_due < next_due then redis.call("ZADD", q.due, 0, "due") end
end

-- Take jobs of a client out of the index.
local function unindex(q, client, ids)
  redis.call("ZREM", q.later .. ":" .. client, unpack(ids))
  if redis.call("EXISTS", q.later .. ":" .. client) == 0 then redis.call("ZREM", q.later, client) end
end

-- Jobs of a client wait for their time no more.
local function unschedule(q, client, ids)
  unindex(q, client, ids)
  redis.call("ZREM", q.scheduled, unpack(ids)) -- last: a torn log may cost a second run, not a job
end
