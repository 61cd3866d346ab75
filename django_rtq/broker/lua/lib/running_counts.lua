-- running_counts: count the running jobs of a queue and of its clients, while there are limits.
-- created when first called
-- uses: limits blocking rates virtual_turns

-- The client in an entry of a processing list; nil: it was claimed without limits.
local function owner_of(held)
  return string.match(held, "^%d+ [%d:.]+ (.*)$")
end

-- Whether these entries are of jobs whose clients take turns by time.
local function are_timed(q, held)
  return held[1] and owner_of(held[1]) and redis.call("EXISTS", q.job_times) == 1
end

-- Count jobs by client: `owners` is a list of clients, and has the number of jobs of each.
local function add_job(owners, client)
  if not owners[client] then owners[#owners + 1] = client end
  owners[client] = (owners[client] or 0) + 1
end

-- Add jobs to the counts of the queue and of clients; -1 as `sign`: take them away.
local function add_running(q, owners, total, sign)
  local members, numbers, counts, gone = { "queue" }, { total }, {}, {}
  for i, client in ipairs(owners) do
    members[i + 1], numbers[i + 1] = "client:" .. client, owners[client]
  end
  local running = read_running(q, members)
  for i, member in ipairs(members) do
    local n = math.max(0, running[member] + sign * numbers[i])
    running[member] = n
    if n > 0 then counts[#counts + 1], counts[#counts + 2] = member, n else gone[#gone + 1] = member end
  end
  if #counts > 64 and counts[1] == "queue" then counts[2] = string.rep("0", 64) .. counts[2] end -- see assign_jobs
  if #counts > 0 then redis.call("HSET", q.running_counts, unpack(counts)) end
  if #gone > 0 then redis.call("HDEL", q.running_counts, unpack(gone)) end
end

-- These entries have left the processing lists: give their places back, and their starts if they did not run.
local function count_ended(q, held, are_unrun)
  local owners, total, there = {}, 0, #held > 0 and redis.call("EXISTS", q.limits, q.job_times) or 0
  for _, entry in ipairs(there > 0 and held or {}) do
    local client = owner_of(entry)
    if client then
      add_job(owners, client)
      total = total + 1
    end
  end
  if total == 0 then return end
  if are_unrun then
    read_rooms(q, owners)
    queue_room(q)
    use_rates(q, owners, total, -1)
  end
  add_running(q, owners, total, -1)
  if there == 2 then charge_ended(q, owners, held, are_unrun) end
  for i, bands in ipairs(redis.call("HMGET", q.blocked, unpack(owners))) do
    if bands then unblock(q, owners[i]) end
  end
  if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
end
