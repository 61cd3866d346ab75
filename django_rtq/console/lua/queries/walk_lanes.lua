-- walk_lanes: the ids of all queued jobs, lane by lane, those behind first. Reads only.
-- Lanes are walked from their ends, because claims take jobs from their beginnings: no job that stays is left out. Jobs that
-- come meanwhile may be left out, and an id may come twice.
-- keys: lanes lane
-- ARGV[1] since       since when the first job of the last lane waited, as it was returned; "": the walk begins
-- ARGV[2] lane        the last lane
-- ARGV[3] seen        how many ids of it were returned; "all"
-- ARGV[4] most        ids, at most 500
--
-- returns {since, lane, seen, id, ...}: the first three are for the next call; {"", "", ""}: this was the end
-- sent twice: changes nothing

local q, since, lane, seen, most = named(), ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local LANES = 200
local answer = { "", "", "" }

local function walk(start)
  local wanted = most + 3 - #answer
  local ids = redis.call("LRANGE", q.lane .. lane, -start - wanted, -start - 1)
  for i = #ids, 1, -1 do answer[#answer + 1] = ids[i] end
  return #ids == wanted and start + #ids or "all"
end

-- Where the lanes behind the last one begin. If its first job was claimed, it has another place now.
local function next_place()
  if since == "" then return 0 end
  if redis.call("ZSCORE", q.lanes, lane) == since then return redis.call("ZRANK", q.lanes, lane) + 1 end
  return redis.call("ZCOUNT", q.lanes, "-inf", "(" .. since)
end

if since ~= "" and seen ~= "all" then seen = walk(tonumber(seen)) end
local place = next_place()
local lanes = #answer < most + 3 and redis.call("ZRANGE", q.lanes, place, place + LANES - 1, "WITHSCORES") or {}
for i = 1, #lanes, 2 do
  if #answer == most + 3 then break end
  lane, since = lanes[i], lanes[i + 1]
  seen = walk(0)
end
if #answer > 3 or #lanes > 0 then answer[1], answer[2], answer[3] = since, lane, seen end
return answer
