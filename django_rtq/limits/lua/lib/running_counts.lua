-- running_counts: count the running jobs of a queue and of its clients, while there are limits.
-- created when first called
-- uses: prelude limits blocking rates virtual_turns used_times

-- The client in an entry of a processing list; nil: it was claimed without limits.
local function owner_of(held)
  return string.match(held, "^%d+ %S+ (.*)")
end

-- Whether these entries are of jobs whose clients take turns by time.
local function are_timed(q, held)
  return held[1] and owner_of(held[1]) and redis.call("EXISTS", q.job_times) == 1
end

-- Count jobs by client: `owners` is a list of clients, and has the number of jobs of each.
local function add_job(owners, client)
  local before = owners[client]
  if not before then owners[#owners + 1] = client end
  owners[client] = (before or 0) + 1
end

-- Add jobs to the counts of the queue and of clients, whose members are given; -1 as `sign`: take them away.
local function add_running(q, owners, members, total, sign)
  local running, counts, gone, texts, c, g = read_running(q, members), {}, {}, {}, 0, 0
  for i = 0, #members do
    local member = i > 0 and members[i] or "queue"
    local n = running[member] + sign * (owners[owners[i]] or total)
    if n > 0 then
      local text = texts[n] or tostring(n) -- Redis needs longer for that
      counts[c + 1], counts[c + 2], texts[n] = member, text, text
      c = c + 2
    else
      n, g = 0, g + 1
      gone[g] = member
    end
    running[member] = n
  end
  if running.queue > 32 then counts[2] = string.rep("0", 64) .. counts[2] end -- see assign_jobs
  if c > 0 then redis.call("HSET", q.running_counts, unpack(counts)) end
  if g > 0 then redis.call("HDEL", q.running_counts, unpack(gone)) end
end

-- Jobs of these clients start.
local function count_started(q, clients)
  local owners, total = {}, #clients
  for i = 1, total do add_job(owners, clients[i]) end
  local members = members_of(owners)
  add_running(q, owners, members, total, 1)
  use_rates(q, owners, members, total, 1)
  if q.has_times then charge_starts(q, owners) end
end

-- These entries have left the processing lists: give their places back, and their starts if they did not run.
local function count_ended(q, held, are_unrun)
  local owners, total, there = {}, 0, #held > 0 and redis.call("EXISTS", q.limits, q.job_times, q.blocked) or 0
  for i = 1, there > 0 and #held or 0 do
    local client = owner_of(held[i])
    if client then
      add_job(owners, client)
      total = total + 1
    end
  end
  if total == 0 then return end
  local members = members_of(owners)
  if are_unrun then
    read_rooms(q, owners)
    queue_room(q)
    use_rates(q, owners, members, total, -1)
  end
  add_running(q, owners, members, total, -1)
  if there > 1 then
    if redis.call("EXISTS", q.job_times) == 1 then charge_ended(q, owners, held, are_unrun) end
    for i, bands in ipairs(redis.call("HMGET", q.blocked, unpack(owners))) do
      if bands then unblock(q, owners[i]) end
    end
  end
  if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
end

-- Count the jobs in the processing lists, after the first limit, or a torn log. Those that were claimed without limits get their
-- client written behind their entry.
local function recount(q)
  local owners, total, claims = {}, 0, {}
  for _, worker in ipairs(redis.call("ZRANGE", q.signed_on, 0, -1)) do
    local held = redis.call("HGETALL", q.running_of .. worker)
    for i = 1, #held, 2 do
      local client = owner_of(held[i + 1])
      if not client then
        client = select(2, read_header(redis.call("HGET", q.jobs, held[i]) or ""))
        redis.call("HSET", q.running_of .. worker, held[i], held[i + 1] .. " " .. client)
      end
      add_job(owners, client)
      claims[client] = claims[client] or {}
      table.insert(claims[client], tonumber(string.match(held[i + 1], "^%d+ (%d+)")))
      total = total + 1
    end
  end
  redis.call("DEL", q.running_counts)
  q.counted = nil
  if total > 0 then add_running(q, owners, members_of(owners), total, 1) end
  if has_time_turns(values_of(redis.call("HGET", q.limits, "queue"))) then
    q.now = q.now or now_ms(q.clock)
    recount_used(q, owners, claims)
  end
end
