-- add_members: add steps to the workflow of a running job, some of their calls at a time. With the last ones they begin, and what
-- waits after the step of the job waits for them, too. There are two queues: the default one, and that of the job.
-- uses: prelude workflow_steps
-- ARGV[1] id          of the workflow
-- ARGV[2] member      id of the job
-- ARGV[3] worker      that runs it
-- ARGV[4] claimed     when this run was claimed, ms
-- ARGV[5] shape       a digest of `steps`: another run of the job that begins with the same ones goes on with them
-- ARGV[6] is_last     "1": these are all calls
-- ARGV[7] texts       number of texts in `list` that describe steps
-- ARGV[...] list      of each step, at most 100: task, queue, size, first, keep, parts, after and next as in `workflow`, but the
--                     steps and members of these are counted from 0. Then parts and their calls in turn, as in store_workflow
--
-- returns {"ok"}, with "last" then parts and their queues in turn: those to be enqueued; {"added"}: a run of the job has added
--         steps already; {"stale"}: this run does not hold it any more; {"over"}: the workflow is; {"full", "steps", "jobs" or
--         "edges"}: it has too many
-- sent twice: "added" after the last part, and nothing changes

local q, target, id, member, worker, claimed, shape = named(), named(2), ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local is_last, list, now, flow = ARGV[6] == "1", ARGV, now_ms(q.clock), find_workflow(q, id)
local FIRST_TEXT, TEXTS, MOST_STEPS, MOST_MEMBERS, MOST_EDGES = 8, 8, 1000, 16000000, 10000
local texts_end = FIRST_TEXT - 1 + ARGV[7]
local number = tonumber(string.sub(member, -6), 16)
local note = "added:" .. number

-- Numbers of steps, with an "e" or without, that count from another one.
local function shift(texts, by)
  return (string.gsub(texts, "%d+", function(n) return string.format("%d", n + by) end))
end

-- The steps that wait for that of the job.
local function read_waiting()
  local own = redis.call("ZREVRANGEBYSCORE", q.workflow_steps .. id, number, "-inf", "LIMIT", 0, 1)[1]
  return redis.call("HGET", flow.hash, "next:" .. own)
end

-- An earlier run of the job had begun to add other steps: their calls go, and their numbers if those are the last ones.
local function drop_begun(base, added)
  for step = base, base + added - 1 do
    for place in string.gmatch(redis.call("HGET", flow.hash, "parts:" .. step), "%d+") do
      redis.call("HDEL", q.waiting_members .. id, step .. ":" .. place)
    end
  end
  redis.call("HDEL", flow.hash, note)
  if redis.call("HGET", flow.hash, "steps") == tostring(base + added) then redis.call("HSET", flow.hash, "steps", base) end
end

-- Give numbers to new steps and their members, and note what is known of them. Returns a reply if there are too many.
local function reserve()
  local steps, members, edges = tonumber(redis.call("HGET", flow.hash, "steps")), 0, 0
  local first, size = unpack(redis.call("HMGET", flow.hash, "first:" .. steps - 1, "size:" .. steps - 1))
  local _, waiting = string.gsub(read_waiting(), "%d+", "")
  first = first + size
  for place = FIRST_TEXT, texts_end, TEXTS do
    members, edges = members + list[place + 2], edges + waiting
  end
  local added = (texts_end + 1 - FIRST_TEXT) / TEXTS
  if steps + added > MOST_STEPS then return { "full", "steps" } end
  if first + members > MOST_MEMBERS then return { "full", "jobs" } end
  if edges > MOST_EDGES then return { "full", "edges" } end
  for place = FIRST_TEXT, texts_end, TEXTS do
    local step = steps + (place - FIRST_TEXT) / TEXTS
    local task, queue, own_size, own_first, keep, parts, after, next = unpack(list, place, place + TEXTS - 1)
    redis.call("HSET", flow.hash, "task:" .. step, task, "queue:" .. step, queue, "size:" .. step, own_size,
      "first:" .. step, string.format("%d", first + own_first), "keep:" .. step, keep, "parts:" .. step, parts,
      "after:" .. step, shift(after, steps), "next:" .. step, shift(next, steps), "state:" .. step, "adding",
      "ends:" .. step, "0 0 0")
  end
  redis.call("HSET", flow.hash, "steps", steps + added, note, string.format("%d %d %d %s", first, steps, added, shape))
end

-- Those that wait for the step of the job wait for this one, too, unless others of the new ones do that.
local function insert_before(step, waiting)
  local next = redis.call("HGET", flow.hash, "next:" .. step)
  if string.find(next .. " ", "%d ") then return end
  for follower, how in string.gmatch(waiting, "(%d+)(e?)") do
    local after, edge = redis.call("HGET", flow.hash, "after:" .. follower), step .. how
    if not string.find(" " .. after .. " ", " " .. edge .. " ", 1, true) then -- else a torn log
      redis.call("HSET", flow.hash, "after:" .. follower, after .. " " .. edge)
    end
    local waits, is_open = q.step_waits .. id .. ":" .. follower, redis.call("SISMEMBER", flow.open, follower) == 1
    if is_open then redis.call("SADD", waits, step) end
  end
  redis.call("HSET", flow.hash, "next:" .. step, next .. " " .. waiting) -- last: after a torn log all of this is done again
end

-- All calls are there: the steps belong to the workflow now, and those that wait for no other start.
local function begin(base, added)
  local waiting, starting = read_waiting(), open_steps(flow, base, base + added - 1)
  for step = base, base + added - 1 do
    insert_before(step, waiting)
    redis.call("HSET", flow.hash, "state:" .. step, "waiting")
  end
  for _, step in ipairs(starting) do finish_step(flow, step, "start", now) end
  redis.call("ZADD", q.workflows, now, id)
end

if not flow or FINAL[flow.state] then return { "over" } end
local run = redis.call("HGET", target.running_of .. worker, member)
if string.match(run or "", "^%d+ (%d+)") ~= claimed then return { "stale" } end
local begun, many, had = string.match(redis.call("HGET", flow.hash, note) or "", "^%d+ (%d+) (%d+) (%S+)$")
if had == "whole" then return { "added" } end
if had ~= shape then
  if had then drop_begun(tonumber(begun), tonumber(many)) end
  local problem = reserve()
  if problem then return problem end
end
local first, base, added = string.match(redis.call("HGET", flow.hash, note), "^(%d+) (%d+) (%d+)")
for place = texts_end + 1, #list, 2 do
  redis.call("HSET", q.waiting_members .. id, string.gsub(list[place], "^%d+", function(n) return n + base end), list[place + 1])
end
if not is_last then return { "ok" } end
begin(tonumber(base), tonumber(added))
redis.call("HSET", flow.hash, note, first .. " " .. base .. " " .. added .. " whole") -- last: a torn log
return add_starting(flow, { "ok" })
