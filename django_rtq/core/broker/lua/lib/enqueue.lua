-- enqueue: check a new job, build its record, and put it into its lane.
-- uses: lanes

local SKEW_MS = 1000
local FIRST = 3 -- argument of jobs, where there may be several

-- Parse a time: "+500" is 500 ms from now, "500" a moment; "" is none.
local function parse_time(text, now)
  if string.sub(text, 1, 1) == "+" then return now + tonumber(text) end
  return tonumber(text)
end

-- Whether a job was made just now, by its id. If not, the clock of the caller's machine is wrong.
local function is_recent(id, now)
  local made = tonumber(string.sub(id, 1, 12), 16)
  return made and math.abs(now - made) <= SKEW_MS
end

-- Build a record. `ready` is text.
local function new_record(band, max_crashes, ready, expires, client, body)
  local expires_at = expires == "" and "0" or string.format("%.0f", parse_time(expires, ready))
  return band .. " " .. max_crashes .. " " .. ready .. " " .. expires_at .. " " .. client .. "\n" .. body
end

-- Append a job to its client's lane, or put it in front.
local function push_new(q, id, band, client, front, at, recent)
  index_lane(q, band, client, at)
  if not recent then redis.call("HSET", q.waiting_since, id, at) end
  redis.call(front ~= "" and "LPUSH" or "RPUSH", q.lane .. band .. ":" .. client, id)
end
