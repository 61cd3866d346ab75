-- dead_heads: the beginnings of the records and of the newest failures of some dead letters. Reads only.
-- uses: failures
-- keys: jobs errors
-- ARGV[1] bytes       how much to return of each
-- ARGV[...] ids       at most 100
--
-- returns {{start of the record, of the newest failure}, ...}, in the order of the ids; "" where there is none
-- sent twice: changes nothing

local q, bytes, ids, answer = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }, {}

local failures = redis.call("HMGET", q.errors, unpack(ids))
for i, record in ipairs(redis.call("HMGET", q.jobs, unpack(ids))) do
  local lines = failures[i] or ""
  local newest = start_of_newest(lines)
  answer[i] = { string.sub(record or "", 1, bytes), string.sub(lines, newest, newest + bytes - 1) }
end
return answer
