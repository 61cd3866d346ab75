-- filter_jobs: find the jobs that match a filter among some ids. Reads only.
-- uses: filter
-- keys: jobs errors
-- ARGV[1] task        its name, or the end of it after a dot; "=" and its name: no other; "": any
-- ARGV[2] client      "=" and its name; "": any
-- ARGV[3] class       of the newest failure, as the task
-- ARGV[4] text        a part of the newest failure's message, or its class; "": any
-- ARGV[5] since       could start no earlier, ms; "": any time
-- ARGV[6] till        could start no later, ms; "": any time
-- ARGV[7] bytes       how much to return of records and failures that cannot be decided here
-- ARGV[...] ids       at most 100
--
-- returns {positions of the ids that match, {{position, start of the record, of its newest failure}: it may match, ...}}
-- sent twice: changes nothing

local q, ids = named(), { select(8, unpack(ARGV)) }
local wanted = { task = ARGV[1], client = ARGV[2], class = ARGV[3], text = ARGV[4] }
local since, till, bytes = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

wanted.since, wanted.till = since, till
local fitting, doubtful = match_jobs(q, wanted, ids, bytes)
return { fitting, doubtful }
