-- used_times: what is known of the time that the jobs of clients used, where `fair_by` of the queue is "seconds".
-- `job_times` has of each client: running jobs; the sum of the times since which they count; what they are charged; the
-- average time of its last jobs, ms; since when they count; its turn while it is blocked. They may count since a time after
-- their claim: a client that was away starts level with the others. "queue" is the average of all jobs.
-- created when first called
-- uses: weights

local BASE_MS = 1700000000000 -- so that a sum of times is exact
local FIRST_MS, MOST_MS = 10, 1000 -- the first average, and what a claim charges for a job at most

-- What is known of the jobs of clients, and the average of all jobs.
local function read_used(q, clients)
  local fields, found = { "queue" }, {}
  for i, client in ipairs(clients) do fields[i + 1] = "client:" .. client end
  local texts = redis.call("HMGET", q.job_times, unpack(fields))
  local mean = tonumber(texts[1] or FIRST_MS)
  for i, client in ipairs(clients) do
    local next_number, used = string.gmatch(texts[i + 1] or "", "%S+"), { client = client }
    for _, name in ipairs({ "running", "starts", "charged", "mean", "since", "turn" }) do
      used[name] = tonumber(next_number() or name ~= "turn" and (name == "mean" and mean or 0) or "")
    end
    found[i] = used
  end
  return found, mean
end

local function write_used(q, used)
  local text = string.format("%.0f %.0f %.17g %.17g %.0f", used.running, used.starts, used.charged, used.mean, used.since)
  if used.turn then text = text .. string.format(" %.17g", used.turn) end
  redis.call("HSET", q.job_times, "client:" .. used.client, text)
end

-- What a claim charges for a job.
local function estimate(used)
  return math.min(used.mean, MOST_MS)
end

-- What the running jobs of a client are to be charged now.
local function charge_of(used, now)
  if used.running == 0 then return 0 end
  return math.max(used.running * estimate(used), used.running * (now - BASE_MS) - used.starts)
end

-- Jobs of a client start.
local function count_starts(used, n, since)
  used.running, used.starts = used.running + n, used.starts + n * (since - BASE_MS)
  used.charged = used.charged + n * estimate(used)
end

-- All running jobs of a client count from now on.
local function count_anew(used, now)
  local running = used.running
  used.running, used.starts, used.charged, used.since = 0, 0, 0, now
  count_starts(used, running, now)
end

-- A job of a client has ended; `noted` is how long it ran, if its worker said so. Returns the new average of all jobs.
local function count_end(used, claimed_at, noted, now, mean)
  local since = math.max(claimed_at, used.since)
  local ran = math.max(0, math.min(noted or math.huge, now - claimed_at))
  used.running, used.starts = math.max(0, used.running - 1), used.starts - (since - BASE_MS)
  used.spent = used.spent + math.max(0, math.min(ran, now - since))
  used.mean = used.mean + (ran - used.mean) / 4
  return mean + (ran - mean) / 16
end

-- Move the turn of a client on in all its rings; back if `ms` is negative. Returns whether it is in any. Newcomers have no
-- turn yet, and a client that is blocked has it elsewhere.
local function move_turns(q, used, ms)
  local is_there = used.turn ~= nil
  if used.turn then used.turn = used.turn + ms end
  for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, -1)) do
    local turn = redis.call("ZSCORE", q.ring .. band, used.client)
    is_there = is_there or turn
    if turn and is_turn(turn) then
      redis.call("ZADD", q.ring .. band, string.format("%.17g", turn + ms), used.client)
    end
  end
  return is_there
end
