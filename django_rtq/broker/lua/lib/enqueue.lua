-- enqueue: check a new job, build its record, and put it into its lane.
-- uses: lanes

local SKEW_MS = 1000

-- Parse a time: "+500" is 500 ms from now, "500" a moment; "" is none.
local function parse_time(text, now)
  if string.sub(text, 1, 1) == "+" then return now + tonumber(text) end
  return tonumber(text)
end

-- The time at which a new job was made, from its id; nil if the clock of the caller's machine is wrong.
local function created_at(id, now)
  local made = tonumber(string.sub(id, 1, 12), 16)
  if made and math.abs(now - made) <= SKEW_MS then return made end
end

local function new_record(band, max_crashes, ready, expires, client, body)
  local expires_at = expires == "" and "0" or string.format("%.0f", parse_time(expires, ready))
  return string.format("%s %s %.0f %s %s\n", band, max_crashes, ready, expires_at, client) .. body
end

-- Append a job to its client's lane, or put it in front.
local function push_new(q, id, band, client, front, now)
  local since, lane = created_at(id, now), q.lane .. band .. ":" .. client
  index_lane(q, band, client, since or now)
  if not since then redis.call("HSET", q.waiting_since, id, now) end
  if front == "1" then redis.call("LPUSH", lane, id) else redis.call("RPUSH", lane, id) end
end
