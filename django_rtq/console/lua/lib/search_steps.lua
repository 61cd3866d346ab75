-- search_steps: what search_jobs looks at, by state: members of sorted sets, running jobs, and the lists of other parts.
-- uses: prelude queued_list finished_list

-- List up to `most` running jobs, the oldest first, behind `at`: {claim time, id}. Returns "more" or "all", the place of
-- each, and {worker, end of its lease, attempt and claim time, cancel request, progress, now} of each.
local function list_held(q, at, most)
  local held, places, known = {}, {}, {}
  local workers = redis.call("ZRANGE", q.workers, 0, -1, "WITHSCORES")
  for w = 1, #workers, 2 do
    local running = redis.call("HGETALL", q.running_of .. workers[w])
    for i = 1, #running, 2 do
      local claimed = tonumber(string.match(running[i + 1], "^%d+ (%d+)") or 0)
      local last = tonumber(at[1] or -1)
      local is_behind = claimed > last or (claimed == last and running[i] > at[2])
      if is_behind then held[#held + 1] = { claimed, running[i], workers[w], workers[w + 1], running[i + 1] } end
    end
  end
  table.sort(held, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  local now = now_ms(q.clock)
  for n = 1, math.min(#held, most) do
    local claimed, id, worker, lease, run = unpack(held[n])
    local request, progress = redis.call("HGET", q.cancel_requests, id), redis.call("HGET", q.progress, id)
    places[n] = { string.format("%.0f", claimed), id }
    known[n] = { worker, lease, run, request or "", progress or "", string.format("%.0f", now) }
  end
  return #held > most and "more" or "all", places, known
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

-- List up to `wanted` members behind a member and its score ("": from the beginning), from the highest or the lowest on.
-- Returns the members with their scores. If the member has left the set, it may begin with some that were seen before.
local function list_scored(key, score, member, wanted, is_falling)
  local start = score == "" and 0 or count_before(key, score, member, is_falling)
  if is_falling then return redis.call("ZREVRANGE", key, start, start + wanted - 1, "WITHSCORES") end
  return redis.call("ZRANGE", key, start, start + wanted - 1, "WITHSCORES")
end

-- Read a list behind `at`. Returns how it ends, the place of each job, from which a search goes on, and what the list knows
-- of each. A place is {time, id}, or {band, turn, client, id, place} of a queued job. `of_client`: "=" and the only one
-- whose jobs are meant, where there is an index, else "".
local function read_list(q, state, at, most, of_client)
  local status, places, known = "all", {}, {}
  if state == "queued" then
    local answer = list_queued(q, #at > 3 and at or { "", "0", at[3] or "" }, most, #at == 3 or #at == 6)
    for k = 2, #answer do
      local band, turn, owner, first = unpack(answer[k], 1, 4)
      for i = 5, #answer[k] do
        places[#places + 1] = { band, turn, owner, answer[k][i], string.format("%.0f", first + i - 5) }
        known[#known + 1] = {}
      end
      places.behind = { band, turn, owner, "", first }
    end
    return answer[1], places, known
  elseif state == "running" then
    return list_held(q, at, most)
  elseif state == "finished" then
    local answer = list_finished(q, at[2] or "", at[1] or "", most)
    for i = 2, #answer, 2 do
      places[#places + 1], known[#known + 1] = { answer[i + 1], answer[i] }, { answer[i + 1] }
    end
    return answer[1], places, known
  end
  local is_falling, is_of_client = state == "dead", state ~= "dead" and of_client ~= ""
  local key = is_falling and q.dead or (state == "retrying" and q.retrying or q.scheduled)
  if is_of_client then key = q.scheduled_by_client .. ":" .. string.sub(of_client, 2) end
  local pairs_found = list_scored(key, at[1] or "", at[2] or "", most, is_falling)
  for i = 1, #pairs_found, 2 do
    local id, score = pairs_found[i], pairs_found[i + 1]
    local is_equal = #at > 0 and tonumber(score) == tonumber(at[1])
    places[#places + 1], known[#known + 1] = { score, id }, { score }
    known[#known].is_seen = is_equal and ((is_falling and id >= at[2]) or (not is_falling and id <= at[2]))
  end
  if (state == "scheduled" or is_of_client) and #places > 0 then -- retrying ones have a list of their own
    local ids = {}
    for i, place in ipairs(places) do ids[i] = place[2] end
    local retrying, scheduled = redis.call("ZMSCORE", q.retrying, unpack(ids)), redis.call("ZMSCORE", q.scheduled, unpack(ids))
    for i = 1, #ids do -- a torn log may leave too much in the index
      local is_meant = scheduled[i] and (retrying[i] ~= false) == (state == "retrying")
      known[i].is_seen = known[i].is_seen or not is_meant
    end
  end
  return #places == most and "more" or "all", places, known
end

-- Find outcomes that contain all of these texts, apart from those in the id. Returns {position, "", ""} of each, and the bytes
-- that were read.
local function match_outcomes(q, texts, ids)
  local found, read = {}, 0
  for i, outcome in ipairs(#ids > 0 and redis.call("HMGET", q.results, unpack(ids)) or {}) do
    local fits = outcome ~= false
    for _, text in ipairs(fits and texts or {}) do
      fits = fits and (string.find(outcome, text, 1, true) or string.find(ids[i], text, 1, true))
    end
    if fits then found[#found + 1] = { i, "", "" } end
    read = read + #(outcome or "")
  end
  return found, read
end
