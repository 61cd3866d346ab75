-- find_job: everything stored about one job. Reads only.
-- uses: prelude workers
-- keys: jobs scheduled dead failures crashes errors results finished workers running_of clock cancel_requests
--       progress result_times
-- ARGV[1] id          the job
--
-- returns {record, due, died, failures, crashes, errors, outcome, next check by trim, worker, attempt and claim time,
--         when the lease of that worker ends, now, cancel request, progress, when it finished, if its
--         outcome is kept}; "" where there is none
-- sent twice: changes nothing

local q, id = named(), ARGV[1]

-- The fields of a job that is not over, from `due` on.
local function read_live()
  local worker, held, lease = find_runner(q, id) -- reads every worker
  return {
    redis.call("ZSCORE", q.scheduled, id),
    redis.call("ZSCORE", q.dead, id),
    redis.call("HGET", q.failures, id),
    redis.call("HGET", q.crashes, id),
    redis.call("HGET", q.errors, id),
    worker,
    held,
    lease,
    redis.call("HGET", q.cancel_requests, id),
    redis.call("HGET", q.progress, id),
  }
end

local record = redis.call("HGET", q.jobs, id)
local live = record and read_live() or {}
return {
  record or "",
  live[1] or "",
  live[2] or "",
  live[3] or "",
  live[4] or "",
  live[5] or "",
  redis.call("HGET", q.results, id) or "",
  redis.call("ZSCORE", q.finished, id) or "",
  live[6] or "",
  live[7] or "",
  live[8] or "",
  now_ms(q.clock),
  live[9] or "",
  live[10] or "",
  redis.call("ZSCORE", q.result_times, id) or "",
}
