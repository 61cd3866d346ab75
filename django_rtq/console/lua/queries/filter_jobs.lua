-- filter_jobs: find the jobs that match a filter among some ids. Reads only.
-- uses: filter
-- keys: jobs errors
-- ARGV[1] task        its name, or the end of it after a dot; "=" and its name: no other; "": any. Several: a line each
-- ARGV[2] client      "=" and its name; "": any
-- ARGV[3] class       of the newest failure, as the task
-- ARGV[4] text        a part of the newest failure's message, or its class; "": any
-- ARGV[5] since       could start no earlier, ms; "": any time
-- ARGV[6] till        could start no later, ms; "": any time
-- ARGV[7] bytes       how much to return of records and failures that cannot be decided here
-- ARGV[8] spellings   of a text in the record, the newest failure or the id, a line each; "": any
-- ARGV[...] ids       at most 100
--
-- returns {positions of the ids that match, {{position, start of the record, of its newest failure}: it may match, ...}}.
--         Of the spellings it says what may match.
-- sent twice: changes nothing

local wanted = read_filter(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8])
local q, ids = named(), { select(9, unpack(ARGV)) }

local fitting, doubtful = match_jobs(q, wanted, ids)
return { fitting, doubtful }
