-- note_times: note how long jobs ran, where clients take turns by time. Sent before their outcomes.
-- KEYS[2] running     the worker's processing list
-- ARGV[...] jobs      of each: id, ms; at most 500
--
-- returns {}
-- sent twice: nothing changes the second time

local q, jobs = named(), ARGV
local ids, noted = {}, {}

for i = 1, #jobs, 2 do ids[#ids + 1] = jobs[i] end
for i, entry in ipairs(redis.call("HMGET", q.running, unpack(ids))) do
  local before, client = string.match(entry or "", "^(%d+ %d+)%S* (.*)$")
  if before then
    noted[#noted + 1], noted[#noted + 2] = ids[i], before .. ":" .. jobs[2 * i] .. " " .. client
  end
end
if #noted > 0 then redis.call("HSET", q.running, unpack(noted)) end
return {}
