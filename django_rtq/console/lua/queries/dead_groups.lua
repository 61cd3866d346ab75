-- dead_groups: dead letters grouped by task and class of error, the newest first. Reads only.
-- uses: failures
-- ARGV[1] start       the first position, counted from the newest, 0
-- ARGV[2] most        so many, at most 500
-- ARGV[3] bytes       how much to return of the record and of its newest failure
-- ARGV[4] task        only its groups; "": of all tasks
-- ARGV[5] heads       "1": return these of each group; "": only of those whose task or class cannot be parsed here
--
-- returns {dead letters in all, {how many, first and last time of death, id of the newest one, task, class, start of its
--         record and of its newest failure}, ...}; "" where there is none

local q, start, most = named(), tonumber(ARGV[1]), tonumber(ARGV[2])
local bytes, wanted, heads = tonumber(ARGV[3]), ARGV[4], ARGV[5]
local answer, of_kind, ids = { redis.call("ZCARD", q.dead) }, {}, {}

local dead = redis.call("ZREVRANGE", q.dead, start, start + most - 1, "WITHSCORES")
for i = 1, #dead, 2 do ids[#ids + 1] = dead[i] end
if #ids == 0 then return answer end

local records, failures = redis.call("HMGET", q.jobs, unpack(ids)), redis.call("HMGET", q.errors, unpack(ids))
for i, record in ipairs(records) do
  local lines, died = failures[i] or "", dead[2 * i]
  local newest = start_of_newest(lines)
  -- What cannot be parsed here is a group of its own; Python merges these.
  local name = string.match(record or "", '^[^\n]*\n{"task":"([^"\\]*)"')
  local class = string.match(lines, '"error_class":"([^"\\]*)"', newest)
  local task = name or record or ""
  local kind = task .. "\n" .. (class or "")
  local group = of_kind[kind]
  if group then
    group[1], group[2] = group[1] + 1, died
  elseif wanted == "" or wanted == task then
    of_kind[kind] = { 1, died, died, ids[i], name or "", class or "", "", "" }
    if heads == "1" or not name or not class then
      of_kind[kind][7], of_kind[kind][8] = string.sub(record or "", 1, bytes), string.sub(lines, newest, newest + bytes - 1)
    end
    answer[#answer + 1] = of_kind[kind]
  end
end
return answer
