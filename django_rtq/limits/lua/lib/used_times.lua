-- used_times: what is known of the time that the jobs of clients used, where `fair_by` of the queue is "seconds".
-- `job_times` has of each client: running jobs; the sum of the times since which they count; what they are charged; the
-- average time of its last jobs, ms; since when they count; its turn while it is blocked. They may count since a time after
-- their claim: a client that was away starts level with the others. "queue" is the average of all jobs, and "turn:<band>"
-- the first turn when a client was blocked last.
-- created when first called

local BASE_MS = 1700000000000 -- so that a sum of times is exact
local FIRST_MS, MOST_MS = 10, 1000 -- the first average, and what a claim charges for a job at most

-- What is known of the jobs of clients. Reads the average of all jobs, too.
local function read_used(q, clients)
  local fields, found = { "queue" }, {}
  for i, client in ipairs(clients) do fields[i + 1] = "client:" .. client end
  local texts = redis.call("HMGET", q.job_times, unpack(fields))
  q.mean = tonumber(texts[1] or FIRST_MS)
  for i, client in ipairs(clients) do
    local next_number, used = string.gmatch(texts[i + 1] or "", "%S+"), { client = client }
    for _, name in ipairs({ "running", "starts", "charged", "mean", "since", "turn" }) do
      used[name] = tonumber(next_number() or name ~= "turn" and (name == "mean" and q.mean or 0) or "")
    end
    found[i] = used
  end
  return found
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

-- Jobs of these clients have left the processing lists; `held` are their entries, which say how long a job ran if its worker
-- said so, and 0 if it did not run. Notes what they have `spent`.
local function count_ends(q, clients, held, are_unrun)
  local of = {}
  for _, used in ipairs(clients) do of[used.client], used.spent = used, 0 end
  for _, entry in ipairs(held) do
    local claimed_at, text, client = string.match(entry, "^%d+ (%d+):?(%S*) (.*)$")
    if client then
      local used, noted = of[client], are_unrun and 0 or tonumber(text)
      local since, ran = math.max(claimed_at, used.since), math.max(0, math.min(noted or math.huge, q.now - claimed_at))
      used.running, used.starts = math.max(0, used.running - 1), used.starts - (since - BASE_MS)
      used.spent = used.spent + math.max(0, math.min(ran, q.now - since))
      if noted ~= 0 then used.mean, q.mean = used.mean + (ran - used.mean) / 4, q.mean + (ran - q.mean) / 16 end
    end
  end
  redis.call("HSET", q.job_times, "queue", string.format("%.17g", q.mean))
end

-- Jobs of clients start. `owners` has the number of jobs of each: see running_counts.
local function charge_starts(q, owners)
  for _, used in ipairs(read_used(q, owners)) do
    count_starts(used, owners[used.client], q.now)
    write_used(q, used)
  end
end

-- A client gets a turn. If it was away, what its running jobs have used before is no debt.
local function start_level(q, used)
  if used.running == 0 and not used.turn then return end
  if not used.turn then count_anew(used, q.now) end
  used.turn = nil
  write_used(q, used)
end

-- Count the running jobs again. `claims` has the times of the claims of each client in `owners`.
local function recount_used(q, owners, claims)
  for _, used in ipairs(read_used(q, owners)) do
    local is_new, charged = used.running == 0, used.charged
    used.running, used.starts = 0, 0
    for _, claimed_at in ipairs(claims[used.client]) do count_starts(used, 1, math.max(claimed_at, used.since)) end
    used.charged = charged
    if is_new then count_anew(used, q.now) end
    write_used(q, used)
  end
  for _, field in ipairs(redis.call("HKEYS", q.job_times)) do
    local client = string.match(field, "^client:(.*)$")
    local is_over = client and not claims[client] and redis.call("HEXISTS", q.blocked, client) == 0
    if is_over then redis.call("HDEL", q.job_times, field) end
  end
end
