-- start_members: enqueue the members of a part of a step. There are two queues: the default one, and that of the step.
-- uses: prelude enqueue bulk_enqueue
-- ARGV[1] id          of the workflow
-- ARGV[2] part        "step:place of its first member"
--
-- returns how many were enqueued
-- sent twice: 0 the second time, and nothing changes

local q, target, id, part = named(), named(2), ARGV[1], ARGV[2]
local now, hash, starting = now_ms(q.clock), q.workflow .. id, q.starting_parts .. id
local CALL = "(%S*) (%d+) (%S*) (%S*) (%S*) ([^\n]*)\n([^\n]*)\n"

-- When the part was enqueued first: its ids have this time, also if a torn log lets it be enqueued again.
local function started_at()
  redis.call("HSETNX", hash, "at:" .. part, string.format("%.0f", now))
  return redis.call("HGET", hash, "at:" .. part)
end

-- The jobs of the part, as arguments of enqueue_many.
local function read_jobs(calls)
  local step, place = string.match(part, "^(%d+):(%d+)$")
  local first, keep, owner = unpack(redis.call("HMGET", hash, "first:" .. step, "keep:" .. step, "client"))
  local jobs, number = { "", "" }, first + place
  local head = string.format("%012x8%s%s%s", started_at(), string.sub(id, 1, 3), keep == "1" and "9" or "8", string.sub(id, 4))
  for band, max_crashes, due, expires, front, client, body in string.gmatch(calls, CALL) do
    local n = #jobs
    jobs[n + 1], jobs[n + 2], jobs[n + 3], jobs[n + 4] = head .. string.format("%06x", number), band, max_crashes, client
    if client == "" then jobs[n + 4] = owner end
    jobs[n + 5], jobs[n + 6], jobs[n + 7], jobs[n + 8] = due, expires, front, body
    number = number + 1
  end
  return jobs
end

local calls, added = redis.call("HGET", q.waiting_members .. id, part), 0
if calls then
  local jobs = read_jobs(calls)
  local plan = plan_jobs(target, jobs, FIRST, PLAIN, nil, now, {})
  add_planned(target, plan, now)
  added = #plan.records / 2
end
redis.call("HDEL", q.waiting_members .. id, part)
redis.call("ZREM", starting, part)
if redis.call("EXISTS", starting) == 1 then
  redis.call("ZADD", q.unstarted, "XX", now, id) -- who goes on with it lives
elseif redis.call("HEXISTS", hash, "cancelling") == 0 then -- else a heartbeat goes on with that
  redis.call("ZREM", q.unstarted, id)
end
return added
