-- held_jobs: jobs that wait because their task is paused. A claim that meets them moves them from their lane to `scheduled`,
-- where they are never due: a score is the number of the pause times SPAN, and since when the job waits. So the jobs of a
-- pause are one range of scores, in their order. Times are below SPAN until the year 2286.
-- created when first called
-- uses: prelude lanes schedule task_pauses

local MANY, LARGE, EACH = 50, 10000, 4 -- jobs that are read together; what counts as one job, or more: bytes, each write

-- Whether a claim must not give a job.
local function is_to_hold(q, id)
  return q.pauses[task_of(redis.call("HGET", q.jobs, id))] ~= nil
end

-- Move the first ids of a lane to `scheduled`. `entries` has the score of each before it, `lowest` is the lowest of them.
local function hold_first(q, lane, ids, entries, lowest)
  local client = string.match(lane, "^[^:]*:(.*)$")
  redis.call("ZADD", q.scheduled, unpack(entries))
  redis.call("ZADD", q.scheduled_by_client, "LT", lowest, client)
  redis.call("ZADD", q.scheduled_by_client .. ":" .. client, unpack(entries))
  redis.call("LTRIM", q.lane .. lane, #ids, -1) -- a torn log may cost a second run, not a job
  redis.call("HDEL", q.waiting_since, unpack(ids))
  local first = redis.call("LINDEX", q.lane .. lane, 0)
  if first then redis.call("ZADD", q.lanes, waiting_since(q, first, q.now), lane) end
end

-- Hold the jobs of paused tasks at the front of a lane, as many as this claim still may. The client keeps its turn.
local function hold_paused(q, claim, lane)
  local wanted = 1
  while claim.may_hold > 0 do
    local found, ids, entries, lowest = redis.call("LRANGE", q.lane .. lane, 0, wanted - 1), {}, {}, math.huge
    for i, record in ipairs(#found > 0 and redis.call("HMGET", q.jobs, unpack(found)) or {}) do
      local number = record and q.pauses[task_of(record)]
      claim.may_hold = claim.may_hold - 1 - math.floor(#(record or "") / LARGE)
      if not number then break end
      local score = held_score(number, waiting_since(q, found[i], q.now))
      ids[i], entries[2 * i - 1], entries[2 * i] = found[i], string.format("%.0f", score), found[i]
      lowest = math.min(lowest, score)
    end
    if #ids > 0 then
      hold_first(q, lane, ids, entries, lowest)
      claim.may_hold = claim.may_hold - EACH
    end
    if #ids < wanted then return end
    wanted = math.min(2 * wanted, MANY, claim.may_hold) -- where jobs of other tasks lie between, few are read in vain
  end
  claim.may_skip = 0 -- the next claim goes on
end

-- Give jobs that a pause held back to their lanes, up to `limit`: each to the front, the last first, so they come in their
-- order. When none is left, the pause is forgotten. Returns how many.
local function return_held(q, field, limit)
  local bottom, top = scores_of(redis.call("HGET", q.paused, field))
  local held = redis.call("ZREVRANGEBYSCORE", q.scheduled, top, bottom, "WITHSCORES", "LIMIT", 0, limit)
  local ids = {}
  for i = 1, #held, 2 do ids[#ids + 1] = held[i] end
  for i, record in ipairs(#ids > 0 and redis.call("HMGET", q.jobs, unpack(ids)) or {}) do
    local _, client = read_header(record or "")
    local since = string.format("%.0f", held[2 * i] - bottom)
    if record then
      redis.call("HSET", q.waiting_since, ids[i], since)
      push_front(q, ids[i], record, since)
    end
    unschedule(q, client, { ids[i] })
  end
  if #ids < limit then redis.call("HDEL", q.paused, field) end
  return #ids
end

-- Go on where tasks were resumed, and jobs are still held. Returns whether any went back.
local function return_more(q, limit)
  local entries, left = redis.call("HGETALL", q.paused), limit
  for i = 1, #entries, 2 do
    local is_over = entries[i] ~= "queue" and not string.find(entries[i + 1], " ", 1, true)
    if is_over and left > 0 then left = left - return_held(q, entries[i], left) end
  end
  return left < limit
end
