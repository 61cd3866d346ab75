-- list_queued: some of the jobs that wait: the bands in order, in each the clients by their turns, of each its lane.
-- Reads only. In a lane it looks no further than DEEP jobs.
-- uses: lanes
-- keys: bands ring lane
-- ARGV[1] band        of the last job that was seen; "": begin at the beginning
-- ARGV[2] turn        of its client
-- ARGV[3] client      its client; with `alone` the one whose jobs are meant
-- ARGV[4] last        its id. When it is in its lane no more, then nothing is that was before it
-- ARGV[5] wanted      ids, at most 500
-- ARGV[6] alone       "1": only the jobs of this client
--
-- returns {"more", "all" or "cut": some lanes are longer; {band, turn, client, id, ...} of each lane with jobs, and of the
--         last one that was looked at}
-- sent twice: answers twice

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
  answer[#answer[#answer] > 3 and #answer + 1 or #answer] = entry -- in place of one without jobs
  found = found + #ids
  is_cut = is_cut or (stop == DEEP - 1 and redis.call("LLEN", lane) > DEEP)
  lanes = lanes + 1
  if found >= wanted or lanes >= LANES then answer[1] = "more" end
  return answer[1] == "more"
end

local function walk_ring(of_band, from)
  if alone then return walk(of_band, "0", client) end
  local ring = redis.call("ZRANGEBYSCORE", q.ring .. of_band, from, "+inf", "WITHSCORES", "LIMIT", 0, LANES)
  for i = 1, #ring, 2 do
    local is_seen = of_band == band and ring[i] == client -- served meanwhile, it got a later turn
    if not is_seen and walk(of_band, ring[i + 1], ring[i]) then return true end
  end
  return #ring == 2 * LANES
end

if band ~= "" and walk(band, turn, client, last) then return answer end
if band ~= "" and not alone and walk_ring(band, "(" .. turn) then return answer end
for _, each in ipairs(redis.call("ZREVRANGE", q.bands, 0, -1)) do
  local is_left = band == "" or tonumber(rank(each)) < tonumber(rank(band))
  if is_left and walk_ring(each, "-inf") then return answer end
end
if is_cut then answer[1] = "cut" end
return answer
