-- schedule: jobs that wait for their time.
--
-- `scheduled` says which, and until when. Beside it `later` is an index by client, so that clients can take turns when
-- many jobs are due: the zset `later` + ":" + client has the client's ids with the same moments, and `later` itself
-- says when promote looks at a client next. Nothing rests on it: what a torn log left too much in it is dropped when
-- promote comes by, and what is missing is promoted by its time alone.

-- When the first of all is due.
local function first_due(q)
  return tonumber(redis.call("ZRANGE", q.scheduled, 0, 0, "WITHSCORES")[2] or math.huge)
end

-- Let a job wait. Wakes a scheduler when it is due earlier than all before. A client is noted before its job, so that
-- promote finds whatever is in the index.
local function schedule(q, client, due, id)
  local next_due = first_due(q)
  redis.call("ZADD", q.scheduled, due, id)
  redis.call("ZADD", q.scheduled_by_client, "LT", due, client)
  redis.call("ZADD", q.scheduled_by_client .. ":" .. client, due, id)
  if due < next_due then redis.call("ZADD", q.due_signal, 0, "due") end
end

-- Take jobs of a client out of the index.
local function remove_from_index(q, client, ids)
  redis.call("ZREM", q.scheduled_by_client .. ":" .. client, unpack(ids))
  if redis.call("EXISTS", q.scheduled_by_client .. ":" .. client) == 0 then redis.call("ZREM", q.scheduled_by_client, client) end
end

-- Jobs of a client wait for their time no more.
local function unschedule(q, client, ids)
  remove_from_index(q, client, ids)
  redis.call("ZREM", q.scheduled, unpack(ids)) -- last: a torn log may cost a second run, not a job
end
