-- find_job: everything stored about one job. Reads only.
-- uses: prelude runners known_ids
-- keys: jobs scheduled dead failures crashes errors results finished finished_before no_outcome
--       no_outcome_before workers running_of clock cancel_requests progress step_jobs runners signed_on
-- ARGV[1] id          the job
--
-- returns {record, due, died, failures, crashes, errors, outcome, 1 if it succeeded and has no outcome, worker,
--         attempt and claim time, when the lease of that worker ends, now, cancel request, progress, what it waits for};
--         "" where there is none
-- sent twice: changes nothing

local q, id = named(), ARGV[1]

-- The fields of a job that is not over, from `due` on.
local function read_live()
  local worker, held, lease = find_runner(q, id)
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
    redis.call("HGET", q.step_jobs, id),
  }
end

-- Whether the job finished lately without an outcome. It mostly finished just now, so it is near the end of the list.
local function is_without_outcome()
  local DEEP = 100000
  return is_finished(q, id)
    and (
      redis.call("LPOS", q.no_outcome, id, "RANK", -1, "MAXLEN", DEEP)
      or redis.call("LPOS", q.no_outcome_before, id, "RANK", -1, "MAXLEN", DEEP)
    )
end

local record, outcome = redis.call("HGET", q.jobs, id), redis.call("HGET", q.results, id)
local live = record and read_live() or {}
return {
  record or "",
  live[1] or "",
  live[2] or "",
  live[3] or "",
  live[4] or "",
  live[5] or "",
  outcome or "",
  not record and not outcome and is_without_outcome() and 1 or "",
  live[6] or "",
  live[7] or "",
  live[8] or "",
  now_ms(q.clock),
  live[9] or "",
  live[10] or "",
  live[11] or "",
}
