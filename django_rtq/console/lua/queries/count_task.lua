-- count_task: count the jobs of a task among those that wait longest and those that are due next. Reads only.
-- ARGV[1] task        its name
-- ARGV[2] most        jobs to read of each kind, at most 250
--
-- returns {queued ones, how many ids were read, scheduled ones, retrying ones, how many ids were read for both}
-- sent twice: changes nothing

local q, task, most = named(), ARGV[1], tonumber(ARGV[2])
local start = '\n{"task":"' .. task .. '"' -- of a record's body
local is_escaped = string.find(task, '["\\]') -- in records, so it would have to be decoded: such names are not counted

-- The positions of the ids that are of the task.
local function places_of(ids)
  local places = {}
  for i, record in ipairs(#ids > 0 and not is_escaped and redis.call("HMGET", q.jobs, unpack(ids)) or {}) do
    local at = record and string.find(record, "\n", 1, true)
    if at and string.sub(record, at, at + #start - 1) == start then places[#places + 1] = i end
  end
  return places
end

local queued = {}
for _, lane in ipairs(redis.call("ZRANGE", q.lanes, 0, most - 1)) do
  if #queued >= most then break end
  for _, id in ipairs(redis.call("LRANGE", q.lane .. lane, 0, most - #queued - 1)) do queued[#queued + 1] = id end
end

local due, retrying = redis.call("ZRANGE", q.scheduled, 0, most - 1), 0
local fitting = places_of(due)
for _, place in ipairs(fitting) do
  if redis.call("ZSCORE", q.retrying, due[place]) then retrying = retrying + 1 end
end
return { #places_of(queued), #queued, #fitting - retrying, retrying, #due }
