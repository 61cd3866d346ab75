-- list_queued: a page of queued jobs: by band, client and lane, in the order of turns. Reads only.
-- uses: queued_list
-- keys: bands ring lane lanes blocked
-- ARGV[1] band        of the last job of the previous page; "": the first page
-- ARGV[2] turn        of its client
-- ARGV[3] client      its client; with `alone` the only one to list
-- ARGV[4] last        its id
-- ARGV[5] place       its place in its lane when it was read
-- ARGV[6] wanted      ids, at most 500
-- ARGV[7] alone       "1": only the jobs of this client
--
-- returns {"more" or "all", {band, turn, client, place of the first id, id, ...} of each lane with jobs, and of the last one
--         that was read}
-- sent twice: changes nothing

local q, band, turn, client, last, place = named(), ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local wanted, alone = tonumber(ARGV[6]), ARGV[7] == "1"

return list_queued(q, { band, turn, client, last, place }, wanted, alone)
