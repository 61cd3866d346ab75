-- finished_list: list jobs whose outcome is kept, what finished last first.
-- uses: retention

local SEEN_DEPTH = 100000

-- List up to `wanted` ids behind `seen`, which finished at `seen_ms`; "": from the beginning. Returns {"more", "all", or
-- "cut": the search for `seen` ended before it was found; id, when it finished (0: unknown), ...}.
local function list_finished(q, seen, seen_ms, wanted)
  local answer, length = { "all" }, redis.call("LLEN", q.recent_results)

  -- Add the ids before a position of `recent_results`, from the last to the first.
  local function add_recent(place)
    local first = math.max(0, place - wanted)
    local ids = place > 0 and redis.call("LRANGE", q.recent_results, first, place - 1) or {}
    for i = #ids, 1, -1 do
      answer[#answer + 1] = ids[i]
      answer[#answer + 1] = string.format("%.0f", read_times(q, ids[i]) or 0)
    end
    wanted = wanted - #ids
    if first > 0 then answer[1] = "more" end
  end

  -- Add ids of `result_times`, of which one more was read than is wanted.
  local function add_older(found)
    for i = 1, math.min(#found, 2 * wanted) do answer[#answer + 1] = found[i] end
    if #found > 2 * wanted then answer[1] = "more" end
  end

  local place = seen == "" and length or redis.call("LPOS", q.recent_results, seen, "RANK", -1, "MAXLEN", SEEN_DEPTH)
  if place then
    add_recent(place)
    if answer[1] == "all" then add_older(redis.call("ZREVRANGE", q.result_times, 0, wanted, "WITHSCORES")) end
    return answer
  end
  local rank = redis.call("ZREVRANK", q.result_times, seen)
  if rank then
    add_older(redis.call("ZREVRANGE", q.result_times, rank + 1, rank + 1 + wanted, "WITHSCORES"))
  elseif length > SEEN_DEPTH then
    answer[1] = "cut"
  else -- it was deleted meanwhile
    add_older(redis.call("ZREVRANGEBYSCORE", q.result_times, seen_ms, "-inf", "WITHSCORES", "LIMIT", 0, wanted + 1))
  end
  return answer
end
