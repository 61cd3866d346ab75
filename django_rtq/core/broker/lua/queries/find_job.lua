-- find_job: everything stored about one job. Reads only.
-- uses: prelude job_row known_ids
-- ARGV[1] id          the job
--
-- returns {record, due, died, failures, crashes, errors, outcome, 1 if it succeeded and has no outcome, worker,
--         attempt and claim time, when the lease of that worker ends, now, cancel request, progress, what it waits for};
--         "" where there is none
-- sent twice: changes nothing

local q, id = named(), ARGV[1]

-- Whether the job finished lately without an outcome. It mostly finished just now, so it is near the end of the list.
local function is_without_outcome()
  local DEEP = 100000
  return is_finished(q, id)
    and (
      redis.call("LPOS", q.no_outcome, id, "RANK", -1, "MAXLEN", DEEP)
      or redis.call("LPOS", q.no_outcome_before, id, "RANK", -1, "MAXLEN", DEEP)
    )
end

local now = now_ms(q.clock)
local job = read_row(q, id, now)
if job[1] == "" and job[7] == "" and is_without_outcome() then job[8] = 1 end
return job
