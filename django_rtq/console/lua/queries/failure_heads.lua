-- failure_heads: the beginnings of the records and of the newest failures of some jobs. Reads only.
-- uses: failures
-- ARGV[1] bytes       how much to return of each
-- ARGV[...] jobs      ids, at most 100; "dead" and "retrying": the job that died last, and that with the latest next attempt
--
-- returns {{id, start of the record, of the newest failure}, ...}, in the order of the jobs; "" where there is none
-- sent twice: changes nothing

local q, bytes, ids, answer = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }, {}

local lists = { dead = q.dead, retrying = q.retrying }
for i, id in ipairs(ids) do
  if lists[id] then ids[i] = redis.call("ZREVRANGE", lists[id], 0, 0)[1] or "" end
end
local failures = redis.call("HMGET", q.errors, unpack(ids))
for i, record in ipairs(redis.call("HMGET", q.jobs, unpack(ids))) do
  local lines = failures[i] or ""
  local newest = start_of_newest(lines)
  answer[i] = { ids[i], string.sub(record or "", 1, bytes), string.sub(lines, newest, newest + bytes - 1) }
end
return answer
