-- autopsy: what some dead letters are, and what they died of, as far as a line or two tell. Reads only.
-- uses: _prelude _failures
--
-- KEYS[1] dead        zset  id -> time of death
-- KEYS[2] jobs        hash  id -> record
-- KEYS[3] errors      hash  id -> the last failures
-- ARGV[1] bytes       of the record and of its newest failure: their beginnings
-- ARGV[...] ids       at most 100
--
-- returns of each {time of death, beginning of the record, beginning of the newest failure}; "" where there is none
-- sent twice: answers twice

local q, bytes, ids = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local answer = {}

local records, failures = redis.call("HMGET", q.jobs, unpack(ids)), redis.call("HMGET", q.errors, unpack(ids))
for i, died in ipairs(redis.call("ZMSCORE", q.dead, unpack(ids))) do
  local lines = failures[i] or ""
  local newest = newest_of(lines)
  answer[i] = { died or "", string.sub(records[i] or "", 1, bytes), string.sub(lines, newest, newest + bytes - 1) }
end
return answer
