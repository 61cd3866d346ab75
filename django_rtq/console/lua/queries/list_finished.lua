-- list_finished: ids of jobs whose outcome is kept, what finished last first. Reads only.
-- uses: finished_list
-- keys: results recent_results result_times
-- ARGV[1] seen        the last id that was seen; "": begin
-- ARGV[2] seen_ms     when that job finished
-- ARGV[3] wanted      ids, at most 100
--
-- returns {"more", "all", or "cut": the search for `seen` ended before it was found; id, when it finished (0: unknown), ...}
-- sent twice: changes nothing

local q, seen, seen_ms, wanted = named(), ARGV[1], ARGV[2], tonumber(ARGV[3])

return list_finished(q, seen, seen_ms, wanted)
