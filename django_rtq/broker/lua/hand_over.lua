-- hand_over: remove a job that another shard has on hold, with a note where it went.
-- queued, scheduled, retrying, dead, finished -> gone: the other shard has it
-- uses: prelude unique outcomes moving carrying
-- keys: jobs scheduled retrying dead cancelled_in_lane failures crashes errors progress waiting_since bands ring lane lanes
--       due_signal scheduled_by_client digests unique workers running_of finished results result_times result_expiry waiters
--       finished_signal cancel_requests clock scratch stats log step_jobs steps carried runners signed_on
-- ARGV[1] id          the job
-- ARGV[2] call        a name for the present `rtq_shards drain` of this shard
-- ARGV[3] shard       the number of the other shard
-- ARGV[4] stamp       of the job, as the other shard has it
--
-- returns "handed"; "changed": its stamp is another by now; "outdated": another drain has begun; or why it has to stay, as
--         pack_job says it
-- sent twice: "handed", and nothing changes

local q, id, call, shard, stamp = named(), ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local now, record = now_ms(q.clock), redis.call("HGET", q.jobs, id)

-- The job leaves its place. Who waits for its end is not told that it has ended with its key: it holds it elsewhere.
local function remove_live(place)
  local band, client = read_header(record)
  local _, _, digest = read_digest(q, id)
  local is_scheduled = redis.call("ZSCORE", q.scheduled, id)
  local is_in_lane = not is_scheduled and place ~= "dead"
  if digest and redis.call("GET", q.unique .. digest) == id then redis.call("DEL", q.unique .. digest) end
  redis.call("HDEL", q.digests, id)
  expire_logs(q, { id }, 0)
  remove_job(q, {
    id = id, client = client, is_scheduled = is_scheduled, is_dead = place == "dead",
    lane = is_in_lane and band .. ":" .. client,
  }, now)
end

local function remove_outcome()
  redis.call("HDEL", q.results, id) -- its id in `recent_results` is passed over
  redis.call("ZREM", q.result_times, id)
  redis.call("ZREM", q.result_expiry, id)
  expire_logs(q, { id }, 0)
end

if redis.call("HGET", q.carried, "") ~= call then return "outdated" end
if not record and redis.call("HGET", q.carried, id) == shard and redis.call("HEXISTS", q.results, id) == 0 then
  return "handed"
end
local parts, found = pack_job(q, id)
if not parts then return found end
if found ~= stamp then return "changed" end
redis.call("DEL", q.scratch) -- lets a full server be drained
redis.call("HSET", q.carried, id, shard) -- first: a torn log may cost a second run, not a job
if record then remove_live(string.match(parts[1], "^%l+")) else remove_outcome() end
count(q.stats, now, "moved", 1)
return "handed"
