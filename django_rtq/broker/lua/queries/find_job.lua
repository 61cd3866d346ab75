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
local record, worker, held, lease = redis.call("HGET", q.jobs, id), nil, nil, nil
if record then worker, held, lease = find_runner(q, id) end -- reads every worker: not for a finished job

return {
  record or "",
  redis.call("ZSCORE", q.scheduled, id) or "",
  redis.call("ZSCORE", q.dead, id) or "",
  redis.call("HGET", q.failures, id) or "",
  redis.call("HGET", q.crashes, id) or "",
  redis.call("HGET", q.errors, id) or "",
  redis.call("HGET", q.results, id) or "",
  redis.call("ZSCORE", q.finished, id) or "",
  worker or "",
  held or "",
  lease or "",
  now_ms(q.clock),
  redis.call("HGET", q.cancel_requests, id) or "",
  redis.call("HGET", q.progress, id) or "",
  redis.call("ZSCORE", q.result_times, id) or "",
}
