-- finished_list: list jobs whose outcome is kept, what finished last first.
-- uses: retention

local SEEN_DEPTH = 100000

-- List up to `wanted` jobs behind `seen`, which finished at `seen_ms`; "": from the beginning. Returns "more", "all", or "cut":
-- the search for `seen` ended before it was found. And the place of each, see read_list(); time 0: unknown.
local function list_finished(q, seen, seen_ms, wanted)
  local places, status, length = {}, "all", redis.call("LLEN", q.recent_results)

  local function add(id, time) places[#places + 1] = { time, id, id = id, time = time } end

  -- Add the ids before a position of `recent_results`, from the last to the first.
  local function add_recent(place)
    local first = math.max(0, place - wanted)
    local ids = place > 0 and redis.call("LRANGE", q.recent_results, first, place - 1) or {}
    for i = #ids, 1, -1 do add(ids[i], string.format("%.0f", read_times(q, ids[i]) or 0)) end
    wanted = wanted - #ids
    if first > 0 then status = "more" end
  end

  -- Add ids of `result_times`, of which one more was read than is wanted.
  local function add_older(found)
    for i = 1, math.min(#found, 2 * wanted), 2 do add(found[i], found[i + 1]) end
    if #found > 2 * wanted then status = "more" end
  end

  local place = seen == "" and length or redis.call("LPOS", q.recent_results, seen, "RANK", -1, "MAXLEN", SEEN_DEPTH)
  local rank = not place and redis.call("ZREVRANK", q.result_times, seen)
  if place then
    add_recent(place)
    if status == "all" then add_older(redis.call("ZREVRANGE", q.result_times, 0, wanted, "WITHSCORES")) end
  elseif rank then
    add_older(redis.call("ZREVRANGE", q.result_times, rank + 1, rank + 1 + wanted, "WITHSCORES"))
  elseif length > SEEN_DEPTH then
    status = "cut"
  else -- it was deleted meanwhile
    add_older(redis.call("ZREVRANGEBYSCORE", q.result_times, seen_ms, "-inf", "WITHSCORES", "LIMIT", 0, wanted + 1))
  end
  return status, places
end
