-- search_jobs: the jobs of a list that match a filter, some at a time. Reads only.
-- uses: prelude filter search_steps job_row
-- ARGV[1] task        its name, or the end of it after a dot; "=" and its name: no other; "": any. Several: a line each
-- ARGV[2] client      "=" and its name; "": any
-- ARGV[3] class       of the newest failure, as the task
-- ARGV[4] text        a part of the newest failure's message, or its class; "": any
-- ARGV[5] since       ms, of the time that the list knows: died, due or finished; else it could start; "": any time
-- ARGV[6] till
-- ARGV[7] spellings   of a text in the record, the newest failure or the id, a line each; "": any
-- ARGV[8] list        queued, scheduled, running, retrying, dead or finished; or as the part `search_steps` says
-- ARGV[9] ids         the beginning of the id; in more lines the workflows, or else any
-- ARGV[10] made       made no later, as its id says, ms; "": any time
-- ARGV[11] texts      what is all in the outcome of a finished job, or in its id, a line each
-- ARGV[12] most       ids to look at, at most 500
-- ARGV[13] enough     it stops when it returns so many
-- ARGV[14] reply      what it returns of those that match: "ids", "count" or "jobs"
-- ARGV[...] at        where the last call ended; nothing: begin. For the queued jobs of one client: "", "0" and the client to
--                     begin, and one more text behind it to go on
--
-- returns {"more", "all", or "cut": the search for `at` ended before it was found; ids looked at; where it ended; how many
--         match and are only counted; {its number among these, where it is, what find_job returns}, ...}. The last only
--         for "jobs", and of those that may match, as all with the spellings or the texts

local wanted = { task = ARGV[1], client = ARGV[2], class = ARGV[3], text = ARGV[4], spellings = read_lines(ARGV[7]) }
local since, till = tonumber(ARGV[5]), tonumber(ARGV[6])
local q, list, wanted_ids, made, texts = named(), ARGV[8], read_ids(ARGV[9]), tonumber(ARGV[10]), read_lines(ARGV[11])
local most, enough, reply, at = tonumber(ARGV[12]), tonumber(ARGV[13]), ARGV[14], { select(15, unpack(ARGV)) }
local PART, MOST_BYTES = 50, 1000000 -- to read and to send: 3 ms
local now = now_ms(q.clock)
local status, places = read_list(q, list, at, most, wanted.client)
local answer, counted, looked, read, sent = {}, 0, 0, 0, 0

-- Whether the id and the time that its list knows match.
local function may_match(place)
  local id, time = place.id, tonumber(place.time)
  if place.is_out or not matches_id(wanted_ids, id) then return false end
  if made and (tonumber(string.sub(id, 1, 12), 16) or 0) > made then return false end
  if place.is_queued and redis.call("HEXISTS", q.jobs, id) == 0 then return false end -- left in its lane
  return not time or (time >= (since or time) and time <= (till or time))
end

-- Add what is returned of one.
local function add(n, place, is_read)
  local job = is_read and read_row(q, place.id, now, place.run or {})
  sent = sent + (job and #job[1] + #job[6] + #job[7] or 0)
  answer[#answer + 1] = { n, place, job or nil }
end

if not (places[1] and places[1].time) then wanted.since, wanted.till = since, till end
while looked < #places and #answer < enough and read + sent < MOST_BYTES do
  local ids, numbers = {}, {}
  for n = looked + 1, math.min(looked + PART, #places) do
    if may_match(places[n]) then ids[#ids + 1], numbers[#numbers + 1] = places[n].id, n end
  end
  local found, bytes
  if list == "finished" then
    found, bytes = match_outcomes(q, texts, ids)
  else
    found, bytes = match_jobs(q, wanted, ids)
  end
  read, looked = read + bytes, math.min(looked + PART, #places)
  for _, each in ipairs(found) do
    local n, is_sure = numbers[each[1]], each[2]
    if reply == "count" and is_sure then
      counted = counted + 1
    else
      add(n, places[n], reply == "jobs" or not is_sure)
      if #answer >= enough or sent >= MOST_BYTES then looked = n break end
    end
  end
end
if looked < #places then
  status = "more"
elseif list == "oldest" and looked > 0 and tonumber(places[looked].time) > (till or math.huge) then
  status = "all"
end
return { status, looked, places[looked] or places.behind or at, counted, unpack(answer) }
