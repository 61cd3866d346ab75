-- list_queued: a page of queued jobs: by band, client and lane, in the order of turns. Reads only.
-- It reads no more than DEEP jobs of a lane.
-- uses: lanes
-- keys: bands ring lane lanes blocked
-- ARGV[1] band        of the last job of the previous page; "": the first page
-- ARGV[2] turn        of its client
-- ARGV[3] client      its client; with `alone` the only one to list
-- ARGV[4] last        its id. If it has left its lane, all jobs before it have, too
-- ARGV[5] wanted      ids, at most 500
-- ARGV[6] alone       "1": only the jobs of this client
--
-- returns {"more", "all" or "cut": some lanes are longer; {band, turn, client, id, ...} of each lane with jobs, and of the
--         last one that was read}
-- sent twice: changes nothing

local q = named()
local band, turn, client, last = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local wanted, alone = tonumber(ARGV[5]), ARGV[6] == "1"
local DEEP, LANES = 10000, 200
local answer, lanes, found, is_cut = { "all", { band, turn, client } }, 0, 0, false

local function walk(of_band, of_turn, of_client, after)
  local lane, start = q.lane .. of_band .. ":" .. of_client, 0
  local place = after and redis.call("LPOS", lane, after, "MAXLEN", DEEP)
  if place then start = place + 1 end
  local stop = math.min(start + wanted - found, DEEP) - 1
  local ids = start <= stop and redis.call("LRANGE", lane, start, stop) or {}
  local entry = { of_band, of_turn, of_client }
  for i, id in ipairs(ids) do entry[3 + i] = id end
  answer[#answer[#answer] > 3 and #answer + 1 or #answer] = entry -- replaces an entry without jobs
  found = found + #ids
  is_cut = is_cut or (stop == DEEP - 1 and redis.call("LLEN", lane) > DEEP)
  lanes = lanes + 1
  if found >= wanted or lanes >= LANES then answer[1] = "more" end
  return answer[1] == "more"
end

-- The clients of a ring and their turns, on the first page or behind the last client. Others may have its turn, too.
local function read_ring(of_band, is_first)
  local ring = q.ring .. of_band
  if is_first then return redis.call("ZRANGE", ring, 0, LANES - 1, "WITHSCORES") end
  if redis.call("ZSCORE", ring, client) == turn then
    local after = redis.call("ZRANK", ring, client) + 1
    return redis.call("ZRANGE", ring, after, after + LANES - 1, "WITHSCORES")
  end
  return redis.call("ZRANGEBYSCORE", ring, "(" .. turn, "+inf", "WITHSCORES", "LIMIT", 0, LANES)
end

local function walk_ring(of_band, is_first)
  if alone then return walk(of_band, "0", client) end
  local ring = read_ring(of_band, is_first)
  for i = 1, #ring, 2 do
    local is_seen = of_band == band and ring[i] == client -- it was served meanwhile, and got a later turn
    if not is_seen and walk(of_band, ring[i + 1], ring[i]) then return true end
  end
  return #ring == 2 * LANES
end

-- The bands with jobs, the highest first. Those in which all clients are blocked are not in `bands`: of these it finds the
-- ones of the lanes that wait longest.
local function read_bands()
  local bands, known = redis.call("ZREVRANGE", q.bands, 0, -1), {}
  if redis.call("EXISTS", q.blocked) == 0 then return bands end
  for _, each in ipairs(bands) do known[each] = true end
  for _, each in ipairs(redis.call("ZRANGE", q.lanes, 0, 999)) do
    local name = string.match(each, "^[^:]*")
    if not known[name] then bands[#bands + 1], known[name] = name, true end
  end
  table.sort(bands, function(a, b) return tonumber(rank(a)) > tonumber(rank(b)) end)
  return bands
end

if band ~= "" and walk(band, turn, client, last) then return answer end
if band ~= "" and not alone and walk_ring(band, false) then return answer end
for _, each in ipairs(read_bands()) do
  local is_left = band == "" or tonumber(rank(each)) < tonumber(rank(band))
  if is_left and walk_ring(each, true) then return answer end
end
if is_cut then answer[1] = "cut" end
return answer
