-- search_steps: the lists that search_jobs walks: members of sorted sets, running jobs, and the lists of other parts. Beside
-- those that people see: "oldest" has the dead letters in the order in which they died, "delayed" all that wait for their time,
-- "held" those that wait because their task is paused, and "lanes" the queued jobs, lane by lane from their ends.
-- uses: queued_list retention task_pauses

local LANES = 200 -- that are read at once
local SEEN_DEPTH = 100000 -- ids among which the last finished job that was seen is searched for

-- List up to `most` running jobs, the oldest first, behind `at`: {claim time, id}.
local function list_held(q, at, most)
  local held, places = {}, {}
  local workers = redis.call("ZRANGE", q.workers, 0, -1, "WITHSCORES")
  for w = 1, #workers, 2 do
    local running = redis.call("HGETALL", q.running_of .. workers[w])
    for i = 1, #running, 2 do
      local id, claimed, last = running[i], tonumber(string.match(running[i + 1], "^%d+ (%d+)") or 0), tonumber(at[1] or -1)
      local is_behind = claimed > last or (claimed == last and id > at[2])
      if is_behind then held[#held + 1] = { claimed, id, { workers[w], running[i + 1], workers[w + 1] } } end
    end
  end
  table.sort(held, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  for n = 1, math.min(#held, most) do
    local claimed, id, run = unpack(held[n])
    places[n] = { string.format("%.0f", claimed), id, id = id, run = run }
  end
  return #held > most and "more" or "all", places
end

-- The number of members before the place behind this one: see list_scored().
local function count_before(key, score, member, is_falling)
  local now = redis.call("ZSCORE", key, member)
  if not now or tonumber(now) ~= tonumber(score) then
    if is_falling then return redis.call("ZCOUNT", key, "(" .. score, "+inf") end
    return redis.call("ZCOUNT", key, "-inf", "(" .. score)
  end
  if is_falling then return redis.call("ZREVRANK", key, member) + 1 end
  return redis.call("ZRANK", key, member) + 1
end

-- List up to `most` members behind a member and its score ("": from the beginning), from the highest or the lowest on. If
-- the member has left the set, some may come that were seen before: these are out.
local function list_scored(key, score, member, most, is_falling)
  local start = score == "" and 0 or count_before(key, score, member, is_falling)
  local found = redis.call(is_falling and "ZREVRANGE" or "ZRANGE", key, start, start + most, "WITHSCORES")
  local places = {}
  for i = 1, math.min(#found, 2 * most), 2 do
    local id, time = found[i], found[i + 1]
    local is_seen = tonumber(time) == tonumber(score) and ((is_falling and id >= member) or (not is_falling and id <= member))
    places[#places + 1] = { time, id, id = id, time = time, is_out = is_seen }
  end
  return #found > 2 * most and "more" or "all", places
end

-- List up to `most` jobs whose outcome is kept, what finished last first, behind {when it finished, id}; time 0: unknown. Returns
-- "cut" if the search for that job ended before it was found.
local function list_finished(q, at, most)
  local places, length, seen = {}, redis.call("LLEN", q.recent_results), at[2]
  local place = seen and redis.call("LPOS", q.recent_results, seen, "RANK", -1, "MAXLEN", SEEN_DEPTH) or not seen and length
  if not place then
    local time = redis.call("ZSCORE", q.result_times, seen)
    if length > SEEN_DEPTH and not time then return "cut", places end
    return list_scored(q.result_times, time or at[1], seen, most, true)
  end
  local first = math.max(0, place - most)
  local ids = place > 0 and redis.call("LRANGE", q.recent_results, first, place - 1) or {}
  for i = #ids, 1, -1 do
    local time = string.format("%.0f", read_times(q, ids[i]) or 0)
    places[#places + 1] = { time, ids[i], id = ids[i], time = time }
  end
  if first > 0 then return "more", places end
  local status, older = list_scored(q.result_times, "", "", most - #places, true)
  for _, each in ipairs(older) do places[#places + 1] = each end
  return status, places
end

-- Those are out that are not in `scheduled`, as after a torn log, and that are in `retrying`, or not.
local function leave_out(q, places, is_retrying)
  local ids = {}
  for i, place in ipairs(places) do ids[i] = place.id end
  if #ids == 0 then return end
  local retrying, scheduled = redis.call("ZMSCORE", q.retrying, unpack(ids)), redis.call("ZMSCORE", q.scheduled, unpack(ids))
  for i, place in ipairs(places) do
    local is_other = is_retrying ~= nil and (retrying[i] ~= false) ~= is_retrying
    place.is_out = place.is_out or not scheduled[i] or is_other
  end
end

-- List up to `most` queued jobs behind `at`: {since when the first job of its lane waits, lane, how many of it were listed}.
-- Claims take jobs from the beginnings of lanes, so from their ends no job that stays is left out. Jobs that come
-- meanwhile may be left out, and one may come twice.
local function list_lanes(q, at, most)
  local places, since, lane, rank = {}, at[1], at[2], 0
  local function walk(seen)
    local ids = redis.call("LRANGE", q.lane .. lane, #places - most - seen, -seen - 1)
    for i = #ids, 1, -1 do
      places[#places + 1] = { since, lane, string.format("%.0f", seen + #ids - i + 1), ids[i], id = ids[i], is_queued = true }
    end
    places.behind = { since, lane, "0", "" }
  end
  if since then
    walk(tonumber(at[3]))
    if redis.call("ZSCORE", q.lanes, lane) == since then
      rank = redis.call("ZRANK", q.lanes, lane) + 1
    else -- its first job was claimed, so it has another place now
      rank = redis.call("ZCOUNT", q.lanes, "-inf", "(" .. since)
    end
  end
  local lanes = #places < most and redis.call("ZRANGE", q.lanes, rank, rank + LANES - 1, "WITHSCORES") or {}
  for i = 1, #lanes, 2 do
    if #places >= most then break end
    lane, since = lanes[i], lanes[i + 1]
    walk(0)
  end
  return (#places >= most or #lanes > 0) and "more" or "all", places
end

-- Read a list behind `at`. Returns how it ends, and the place of each job, from which a search goes on: {time, id}, or {band,
-- turn, client, id, place} of a queued job. Beside that: its `id`, the `time` that the list knows, whether it `is_out` or
-- `is_queued`, and of its `run` {worker, attempt and claim time, end of the lease}. `of_client`: "=" and the only one
-- whose jobs are meant, where there is an index, else "".
local function read_list(q, list, at, most, of_client)
  if list == "queued" then
    return list_queued(q, #at > 3 and at or { "", "0", at[3] or "" }, most, #at == 3 or #at == 6)
  elseif list == "lanes" then
    return list_lanes(q, at, most)
  elseif list == "running" then
    return list_held(q, at, most)
  elseif list == "finished" then
    return list_finished(q, at, most)
  end
  local is_dead = list == "dead" or list == "oldest"
  local is_of_client = not is_dead and of_client ~= ""
  local key = is_dead and q.dead or (list == "retrying" and q.retrying or q.scheduled)
  if is_of_client then key = q.scheduled_by_client .. ":" .. string.sub(of_client, 2) end
  local first = list == "held" and lowest_held() or ""
  local status, places = list_scored(key, at[1] or first, at[2] or "", most, list == "dead")
  if list == "scheduled" then
    leave_out(q, places, false)
  elseif is_of_client then
    leave_out(q, places, list == "retrying" or nil)
  end
  return status, places
end

-- Find outcomes that contain all of these texts, apart from those in the id: they may match. Returns {position} of each, and
-- how many bytes were read.
local function match_outcomes(q, texts, ids)
  local found, read = {}, 0
  for i, outcome in ipairs(#ids > 0 and redis.call("HMGET", q.results, unpack(ids)) or {}) do
    local fits = outcome ~= false
    for _, text in ipairs(fits and texts or {}) do
      fits = fits and (string.find(outcome, text, 1, true) or string.find(ids[i], text, 1, true))
    end
    if fits then found[#found + 1] = { i } end
    read = read + #(outcome or "")
  end
  return found, read
end
