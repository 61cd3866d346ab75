-- track_incidents: store which incidents there are, and tell which have opened and closed since the last view.
-- An incident opens when two views in a row have it, so what passes at once is not told. It closes with the first view
-- without it. A view that is not newer than the last one by a gap changes nothing: several schedulers look.
-- ARGV[1] seen        the time of the view, ms
-- ARGV[2] gap         that has to lie between two views, ms
-- ARGV[3] token       of this call, without spaces
-- ARGV[4] seconds     to keep all this
-- ARGV[...] given     of each incident: its id, its text; at most 100
--
-- returns {text of each that opened, "", text of each that closed}; {} for a view that changes nothing
-- sent twice: the same answer, and nothing changes

local q, seen, gap, token, seconds = named(), tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local given = { select(5, unpack(ARGV)) }
local VIEW = "" -- the field of the last view; ids are not empty
local stored, is_there, answer, closed = {}, {}, {}, {}

local flat = redis.call("HGETALL", q.incidents)
for i = 1, #flat, 2 do stored[flat[i]] = flat[i + 1] end
local last_seen, last_token = string.match(stored[VIEW] or "0 -", "^(%d+) (.*)$")
stored[VIEW] = nil

-- "seen", "open" or "closed"; the token of the call that made it so; and the text of the incident.
local function parts(line) return string.match(line or "  ", "^(%a*) (%S*) (.*)$") end

local function store(id, state, text)
  stored[id] = state .. " " .. token .. " " .. text
  redis.call("HSET", q.incidents, id, stored[id])
end

if last_token ~= token then
  if seen < last_seen + gap then return {} end
  for i = 1, #given, 2 do
    local id, state = given[i], parts(stored[given[i]])
    is_there[id] = true
    if state ~= "open" then store(id, state == "seen" and "open" or "seen", given[i + 1]) end
  end
  for id, line in pairs(stored) do
    local state, _, text = parts(line)
    if not is_there[id] and state == "open" then
      store(id, "closed", text)
    elseif not is_there[id] then
      redis.call("HDEL", q.incidents, id)
    end
  end
  redis.call("HSET", q.incidents, VIEW, string.format("%.0f ", seen) .. token)
  redis.call("EXPIRE", q.incidents, seconds)
end

for _, line in pairs(stored) do
  local state, changed_by, text = parts(line)
  if changed_by == token and state == "open" then answer[#answer + 1] = text end
  if changed_by == token and state == "closed" then closed[#closed + 1] = text end
end
answer[#answer + 1] = ""
for _, text in ipairs(closed) do answer[#answer + 1] = text end
return answer
