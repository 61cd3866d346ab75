-- count_matching: count dead letters that match a filter. Reads only.
-- uses: filter
-- keys: dead jobs errors
-- ARGV[1] task        its name, or the end of it after a dot; "=" and its name: no other; "": any. Several: a line each
-- ARGV[2] client      "=" and its name; "": any
-- ARGV[3] class       of the newest failure, as the task
-- ARGV[4] text        a part of the newest failure's message, or its class; "": any
-- ARGV[5] since       died no earlier, ms; "": any time
-- ARGV[6] till        died no later, ms; "": any time
-- ARGV[7] bytes       how much to return of records and failures that cannot be decided here
-- ARGV[8] spellings   as in filter_jobs.lua
-- ARGV[9] ids         the beginning of the id; in more lines the workflows, or else any
-- ARGV[10] start      the first position, counted from the oldest, 0
-- ARGV[11] most       so many, at most 100
--
-- returns {how many were checked, how many match, {{position, start of the record, of its newest failure}: it may match,
--         ...}}
-- sent twice: changes nothing

local wanted = read_filter(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8])
local q, wanted_ids = named(), read_ids(ARGV[9])
local start, most = tonumber(ARGV[10]), tonumber(ARGV[11])
local since, till = wanted.since, wanted.till

wanted.since, wanted.till = nil, nil -- of the death, not of the record
local dead, ids = redis.call("ZRANGE", q.dead, start, start + most - 1, "WITHSCORES"), {}
for i = 1, #dead, 2 do
  local died = tonumber(dead[i + 1])
  local is_meant = died >= (since or died) and died <= (till or died) and matches_id(wanted_ids, dead[i])
  if is_meant then ids[#ids + 1] = dead[i] end
end
local fitting, doubtful = match_jobs(q, wanted, ids)
return { #dead / 2, #fitting, doubtful }
