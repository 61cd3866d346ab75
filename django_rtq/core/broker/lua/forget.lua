-- forget: remove a queue that holds no jobs from the list of queues, with all of its keys that do not expire.
-- uses: prelude
-- ARGV[1] idle_ms     for how long no worker may have shown a sign of life; 0: it does not matter
-- ARGV[2] discard     "1": with the outcomes of finished jobs, else ""
-- ARGV[3] dry_run     "1": change nothing, and say "forgotten" if it would be
--
-- returns "forgotten"; "missing": the list did not name it; "more": call it again; or what it still has: "jobs",
--         "paused", "limits", "workers", "recent" (jobs that finished lately may be sent again, or a worker was
--         there), "outcomes"
-- sent twice: "missing", and nothing changes, unless the queue was used in between

local q, idle_ms, discard, dry_run = named(), tonumber(ARGV[1]), ARGV[2] == "1", ARGV[3] == "1"
local LANES = 100
local now, _, clock = now_ms(q.clock)
local contact = tonumber(redis.call("HGET", q.clock, "contact") or 0)

if redis.call("EXISTS", q.jobs) == 1 then return "jobs" end
if redis.call("EXISTS", q.paused) == 1 then return "paused" end
if redis.call("EXISTS", q.limit_sources, q.blocked) > 0 then return "limits" end
if redis.call("EXISTS", q.workers, q.signed_on) > 0 then return "workers" end
if redis.call("EXISTS", q.finished, q.finished_before) > 0 or now - contact < idle_ms then return "recent" end
if not discard and redis.call("EXISTS", q.results) == 1 then return "outcomes" end -- handles ask for these
if dry_run then return "forgotten" end

redis.call("DEL", q.scratch) -- lets a full server be drained
-- What is left in lanes are ids of cancelled jobs.
local lanes = redis.call("ZRANGE", q.lanes, 0, LANES - 1)
for _, lane in ipairs(lanes) do redis.call("UNLINK", q.lane .. lane) end
if #lanes > 0 then redis.call("ZREM", q.lanes, unpack(lanes)) end
if #lanes == LANES then return "more" end

for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, -1)) do redis.call("UNLINK", q.ring .. band) end
redis.call(
  "UNLINK", q.bands, q.failures, q.crashes, q.errors, q.progress, q.waiting_since, q.dead, q.cancelled_in_lane, q.turn,
  q.work_signal, q.scheduled, q.retrying, q.scheduled_by_client, q.due_signal, q.schedules, q.cancel_requests,
  q.results, q.recent_results, q.result_times, q.result_expiry, q.no_outcome, q.no_outcome_before, q.waiters, q.digests,
  q.totals, q.rate_times, q.next_starts, q.settings_stamp, q.job_times, q.runners
)
if now == clock then redis.call("UNLINK", q.clock) end -- or else time would run backwards
-- Producers do not add a queue to the list again that they have added before. So the first enqueue of a minute does: see
-- count(). Without the counters of this minute, the next one is the first.
redis.call("UNLINK", q.stats .. math.floor(now / 60000))
return redis.call("SREM", queue_of(q.stats)) == 1 and "forgotten" or "missing"
