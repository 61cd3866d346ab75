-- count_task: count the jobs of a task among those that wait longest and those that are due next. Reads only.
-- uses: filter
-- keys: lanes lane scheduled retrying jobs errors
-- ARGV[1] task        its name
-- ARGV[2] most        jobs to read of each kind, at most 250
--
-- returns {queued ones, how many ids were read, scheduled ones, retrying ones, how many ids were read for both}
-- sent twice: changes nothing

local q, most = named(), tonumber(ARGV[2])
local wanted = { task = "=" .. ARGV[1], client = "", class = "", text = "", bytes = 0 } -- doubtful ones are not counted

local queued = {}
for _, lane in ipairs(redis.call("ZRANGE", q.lanes, 0, most - 1)) do
  if #queued >= most then break end
  for _, id in ipairs(redis.call("LRANGE", q.lane .. lane, 0, most - #queued - 1)) do queued[#queued + 1] = id end
end

local due, retrying = redis.call("ZRANGE", q.scheduled, 0, most - 1), 0
local fitting = match_jobs(q, wanted, due)
for _, place in ipairs(fitting) do
  if redis.call("ZSCORE", q.retrying, due[place]) then retrying = retrying + 1 end
end
return { #match_jobs(q, wanted, queued), #queued, #fitting - retrying, retrying, #due }
