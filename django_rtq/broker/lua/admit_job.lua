-- admit_job: put a job that another shard has handed over in its place; or forget one that has stayed there.
-- on hold -> queued, scheduled, retrying, dead, finished
-- uses: prelude lanes schedule restore steps moving
-- keys: jobs scheduled retrying dead cancelled_in_lane failures crashes errors progress waiting_since bands ring lane lanes
--       turn work_signal due_signal scheduled_by_client digests unique workers running_of runners signed_on finished
--       finished_before results result_times result_expiry clock scratch log step_jobs steps carried arrivals arriving
-- ARGV[1] id          the job
-- ARGV[2] shard       the number of the other shard
-- ARGV[3] call        "": the job was handed over. Else it has stayed: the name of the present `rtq_shards drain`
--
-- returns "admitted", "forgotten", or "gone" if it is not on hold (any more); "outdated": another drain has begun
-- sent twice: "gone", and nothing changes

local q, id, shard, call = named(), ARGV[1], ARGV[2], ARGV[3]
local now, list = now_ms(q.clock), q.arriving .. id
local parts = redis.call("LRANGE", list, 0, -1)
local state, at = string.match(parts[1] or "", "^(%l+) (%S+)$")

-- A waiting job whose key another job has here runs without it: as in two shards, both may run.
local function take_key(due)
  local held_until = retake_digest(q, parts, due)
  if held_until then return held_until end
  parts[8] = ""
  return math.min(due, tonumber(string.match(parts[3], "^%S+ %S+ (%d+)") or 0))
end

local function admit_live()
  local record = string.gsub(parts[3], "^(%-?%d+)%+", "%1", 1) -- promote marks the band
  local _, client = read_header(record)
  forget_id(q, id, now)
  if state == "dead" then
    redis.call("ZADD", q.dead, at, id)
  elseif state == "lane" then
    take_key(0)
    local since = parts[7] ~= "" and parts[7] or at ~= "0" and at or waiting_since(q, id, now)
    push_back(q, id, record, since)
    parts[7] = ""
  else
    local due = take_key(tonumber(at))
    schedule(q, client, due, id)
    if state == "retrying" then redis.call("ZADD", q.retrying, due, id) end
  end
  restore_steps(q, id)
  put_beside(q, parts)
  redis.call("HSET", q.jobs, id, record)
end

local function admit_outcome()
  local finished_at, keep_ms = string.match(parts[3], "^(%d+) (%d+) ")
  redis.call("ZADD", q.result_times, finished_at or now, id)
  redis.call("ZADD", q.result_expiry, (finished_at or now) + (keep_ms or 0), id)
  redis.call("HSET", q.results, id, parts[3])
end

if redis.call("HGET", q.arrivals, id) ~= shard then return "gone" end
if call ~= "" and redis.call("HGET", q.arrivals, "from " .. shard) ~= call then return "outdated" end
redis.call("DEL", q.scratch) -- lets a full server be drained
local is_there = redis.call("HEXISTS", q.jobs, id) == 1 or redis.call("HEXISTS", q.results, id) == 1 -- the log was torn
if call ~= "" then
  redis.call("DEL", q.steps .. id, q.log .. id)
elseif state == "finished" and not is_there then
  admit_outcome()
elseif state and not is_there then
  admit_live()
end
if call == "" then redis.call("HDEL", q.carried, id) end
redis.call("DEL", list)
redis.call("HDEL", q.arrivals, id) -- last: until then it is found again
return call == "" and "admitted" or "forgotten"
