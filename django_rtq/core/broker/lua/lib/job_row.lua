-- job_row: everything that is stored about one job.
-- uses: runners

-- Returns {record, due, died, failures, crashes, errors, outcome, "", worker, attempt and claim time, when the lease of that
-- worker ends, now, cancel request, progress, what it waits for}; "" where there is none. `run`: the three of the worker, if
-- they are known.
local function read_row(q, id, now, run)
  local record, outcome = redis.call("HGET", q.jobs, id), redis.call("HGET", q.results, id) or ""
  if not record then return { "", "", "", "", "", "", outcome, "", "", "", "", now, "", "", "" } end
  local worker, held, lease = unpack(run or { find_runner(q, id) })
  return {
    record,
    redis.call("ZSCORE", q.scheduled, id) or "",
    redis.call("ZSCORE", q.dead, id) or "",
    redis.call("HGET", q.failures, id) or "",
    redis.call("HGET", q.crashes, id) or "",
    redis.call("HGET", q.errors, id) or "",
    outcome,
    "",
    worker or "",
    held or "",
    lease or "",
    now,
    redis.call("HGET", q.cancel_requests, id) or "",
    redis.call("HGET", q.progress, id) or "",
    redis.call("HGET", q.step_jobs, id) or "",
  }
end
