-- promote: pick due jobs of clients in turn, by the index that lib/schedule keeps, and group them by lane.
-- uses: prelude

-- Start with a client. Returns the lists of ids to remove from its index.
local function visit_client(picked, client)
  if not picked.leaving[client] then
    picked.leaving[client] = {}
    picked.clients[#picked.clients + 1] = client
  end
  return picked.leaving[client]
end

-- Pick ids of the next clients, an equal share of each. Returns the ids, and the client in whose index each was.
local function shares(q, picked, wanted, now)
  local clients = redis.call("ZRANGEBYSCORE", q.scheduled_by_client, "-inf", now, "LIMIT", 0, wanted)
  local share, ids, owners = math.ceil(wanted / math.max(#clients, 1)), {}, {}
  for _, client in ipairs(clients) do
    if #ids < wanted then
      local leaving, room, known, lost = visit_client(picked, client), #ids + share, 0, {}
      for _, list in ipairs(leaving) do known = known + #list end -- already picked by time: these come first in its index
      local most = room - #ids + known
      for _, id in ipairs(redis.call("ZRANGEBYSCORE", q.scheduled_by_client .. ":" .. client, "-inf", now, "LIMIT", 0, most)) do
        if picked.has[id] then
          if known == 0 then lost[#lost + 1] = id end
        elseif #ids < room then
          ids[#ids + 1], owners[#owners + 1] = id, client
        end
      end
      if #lost > 0 then leaving[1] = lost end
    end
  end
  return ids, owners
end

-- Returns id and due of the jobs that the next clients have. `known` are those of the jobs that are due first. What is not
-- scheduled any more, or only for later, is removed from the index.
local function due_by_turns(q, picked, wanted, known, now)
  local ids, owners = shares(q, picked, wanted, now)
  local moments, asked, due = {}, {}, {}
  for i = 1, #known, 2 do moments[known[i]] = known[i + 1] end
  for _, id in ipairs(ids) do
    if not moments[id] then asked[#asked + 1] = id end
  end
  for i, moment in ipairs(#asked > 0 and redis.call("ZMSCORE", q.scheduled, unpack(asked)) or {}) do
    moments[asked[i]] = moment and tonumber(moment) <= now and moment
  end
  for i, id in ipairs(ids) do
    if moments[id] then
      due[#due + 1], due[#due + 2] = id, moments[id]
    else
      table.insert(visit_client(picked, owners[i]), { id })
    end
  end
  return due
end

-- Assign a picked job to its lane, and to the index that it leaves.
local function assign_lane(picked, id, record, moment)
  local band, client = read_header(record)
  if picked.is_ahead and tonumber(band) then
    -- In its header, so that it returns to this band whenever it is pushed back.
    band, record = band .. "+", string.gsub(record, "^%-?%d+", "%0+", 1)
    picked.fresh[#picked.fresh + 1], picked.fresh[#picked.fresh + 2] = id, record
  end
  local name, lanes, since = band .. ":" .. client, picked.lanes, picked.since
  local lane = lanes[name]
  if not lane then
    lane = { band = band, client = client, since = moment, ids = {} }
    lanes[name], lanes[#lanes + 1] = lane, lane
    table.insert(visit_client(picked, client), lane.ids)
  end
  lane.ids[#lane.ids + 1] = id
  since[#since + 1], since[#since + 2] = id, moment
end
