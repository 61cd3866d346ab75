-- _later: turns of the clients whose jobs are due, by the index that _schedule keeps.

-- The client is looked at. Answers the list of ids that leave the index with this call.
local function ids_leaving(picked, client)
  if not picked.leaving[client] then
    picked.leaving[client] = {}
    picked.clients[#picked.clients + 1] = client
  end
  return picked.leaving[client]
end

-- What the next clients bring: id and due in turn. In a crowd each gives its share of what is wanted; else all that is
-- due was picked, and those that the index still says to look at are put right.
local function due_by_turns(q, picked, wanted, is_crowd, now)
  local clients = redis.call("ZRANGEBYSCORE", q.later, "-inf", now, "LIMIT", 0, wanted)
  local share, ids, leaving, due = math.ceil(wanted / math.max(#clients, 1)), {}, {}, {}
  for _, client in ipairs(clients) do
    if #ids < wanted and (is_crowd or not picked.leaving[client]) then
      local theirs, room = ids_leaving(picked, client), math.min(#ids + share, wanted)
      local most = room - #ids + #theirs -- the first ones may have been picked by their time
      for _, id in ipairs(redis.call("ZRANGEBYSCORE", q.later .. ":" .. client, "-inf", now, "LIMIT", 0, most)) do
        if picked.has[id] == "lost" then
          theirs[#theirs + 1] = id
        elseif not picked.has[id] and #ids < room then
          ids[#ids + 1], leaving[#ids + 1] = id, theirs
        end
      end
    end
  end
  for i, moment in ipairs(#ids > 0 and redis.call("ZMSCORE", q.scheduled, unpack(ids)) or {}) do
    if moment and tonumber(moment) <= now then
      due[#due + 1], due[#due + 2] = ids[i], moment
    else
      table.insert(leaving[i], ids[i])
    end
  end
  return due
end

-- What was picked leaves the index. Who has more that is due comes after all others that have.
local function end_looks(q, picked, now)
  local looks, gone = {}, {}
  for _, client in ipairs(picked.clients) do
    local key, ids = q.later .. ":" .. client, picked.leaving[client]
    if #ids > 0 then redis.call("ZREM", key, unpack(ids)) end
    local next_due = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")[2]
    if next_due then
      looks[#looks + 1], looks[#looks + 2] = math.max(now, next_due), client
    else
      gone[#gone + 1] = client
    end
  end
  if #looks > 0 then redis.call("ZADD", q.later, unpack(looks)) end
  if #gone > 0 then redis.call("ZREM", q.later, unpack(gone)) end
end
