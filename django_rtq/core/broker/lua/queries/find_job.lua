-- find_job: everything stored about one job. Reads only.
-- uses: prelude job_row known_ids
-- ARGV[1] id          the job
--
-- returns {record, due, died, failures, crashes, errors, outcome, 1 if it succeeded and has no outcome, worker,
--         attempt and claim time, when the lease of that worker ends, now, cancel request, progress, what it waits for};
--         "" where there is none

local q, id = named(), ARGV[1]

local DEEP = 100000 -- it mostly finished just now, so it is near the end of the list
local now = now_ms(q.clock)
local job = read_row(q, id, now)
if job[1] == "" and job[7] == "" and is_finished(q, id) then
  local is_there = redis.call("LPOS", q.no_outcome, id, "RANK", -1, "MAXLEN", DEEP)
    or redis.call("LPOS", q.no_outcome_before, id, "RANK", -1, "MAXLEN", DEEP)
  if is_there then job[8] = 1 end
end
return job
