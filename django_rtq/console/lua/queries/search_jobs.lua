-- search_jobs: find the jobs of one state that match a filter, some at a time. Reads only.
-- uses: filter search_steps
-- keys: jobs errors bands ring lane lanes blocked scheduled retrying scheduled_by_client dead results recent_results
--       result_times workers running_of cancel_requests progress clock
-- ARGV[1] task        the first eight are as in filter_jobs.lua
-- ARGV[2] client
-- ARGV[3] class
-- ARGV[4] text
-- ARGV[5] since       ms, of the time that the list knows: died, due or finished; else it could start
-- ARGV[6] till
-- ARGV[7] bytes
-- ARGV[8] spellings
-- ARGV[9] state       queued, scheduled, running, retrying, dead or finished
-- ARGV[10] ids        the beginning of the id; in more lines the workflows, or else any
-- ARGV[11] most       ids to look at, at most 500
-- ARGV[12] enough     it stops at so many that match, give or take 50
-- ARGV[13] texts      what is all in the outcome of a finished job, or in its id, a line each
-- ARGV[...] at        where the last call ended; nothing: begin. For the queued jobs of one client: "", "0" and the client to
--                     begin, and one more text behind it to go on
--
-- returns {"more", "all", or "cut": the search for `at` ended before it was found; ids looked at; where it ended; {its
--         number among these, where it is, what its list knows, start of the record, of its newest failure}, ...}. The last
--         two are "" if it matches, apart from the spellings; else it may match. The list knows of a running job
--         {worker, lease, claim, cancel request, progress, now}, else {when it died, is due or finished}
-- sent twice: changes nothing

local wanted = read_filter(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8])
local q, state, wanted_ids = named(), ARGV[9], read_ids(ARGV[10])
local most, enough, texts = tonumber(ARGV[11]), tonumber(ARGV[12]), read_lines(ARGV[13])
local at = { select(14, unpack(ARGV)) }
local PART, MOST_BYTES = 50, 1000000
local status, places, known = read_list(q, state, at, most, wanted.client)
local since, till, answer, looked, read = wanted.since, wanted.till, {}, 0, 0
local is_by_record = state == "queued" or state == "running"

-- Whether the id and the time that its list knows match.
local function may_match(n)
  local id, time = places[n][#places[n] > 2 and 4 or 2], not is_by_record and tonumber(known[n][1])
  if not matches_id(wanted_ids, id) or known[n].is_seen then return false end
  if state == "queued" and redis.call("HEXISTS", q.jobs, id) == 0 then return false end -- left in its lane
  return not time or (time >= (since or time) and time <= (till or time))
end

if not is_by_record then wanted.since, wanted.till = nil, nil end
while looked < #places and #answer < enough and read < MOST_BYTES do
  local ids, positions = {}, {}
  local found, doubtful, bytes
  for n = looked + 1, math.min(looked + PART, #places) do
    if may_match(n) then ids[#ids + 1], positions[#positions + 1] = places[n][#places[n] > 2 and 4 or 2], n end
  end
  if state == "finished" then
    found, bytes = match_outcomes(q, texts, ids)
  else
    found, doubtful, bytes = match_jobs(q, wanted, ids)
    for k, i in ipairs(found) do found[k] = { i, "", "" } end
    for _, each in ipairs(doubtful) do found[#found + 1] = each end
    table.sort(found, function(a, b) return a[1] < b[1] end)
  end
  for _, each in ipairs(found) do
    local n = positions[each[1]]
    answer[#answer + 1] = { n, places[n], known[n], each[2], each[3] }
  end
  looked, read = math.min(looked + PART, #places), read + bytes
end
if looked < #places then status = "more" end
return { status, looked, places[looked] or places.behind or at, unpack(answer) }
