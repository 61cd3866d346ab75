-- failures: what is written down of runs that failed.
-- uses: prelude

local KEPT_ERRORS = 5 -- of a job; older ones are forgotten

-- Add a failure, one JSON a line, to those kept of a job.
local function add_error(errors, id, line)
  local lines = (redis.call("HGET", errors, id) or "") .. line .. "\n"
  while select(2, string.gsub(lines, "\n", "")) > KEPT_ERRORS do lines = string.match(lines, "\n(.*)") end
  redis.call("HSET", errors, id, lines)
end

-- Where the newest failure begins among those kept.
local function start_of_newest(lines)
  local start, ends = 1, string.find(lines, "\n", 1, true) -- a plain text: a pattern would look at every character
  while ends and ends < #lines do
    start, ends = ends + 1, string.find(lines, "\n", ends + 1, true)
  end
  return start
end

-- Whether the newest failure of a job is of the same class as this one.
local function is_same_error(errors, id, line)
  local lines, class = redis.call("HGET", errors, id) or "", string.match(line, '"error_class":"[^"]*"')
  return class and string.find(lines, class, start_of_newest(lines), true)
end

-- A run failed. It counts, unless this worker could not run the job at all.
local function record_failure(q, id, failures, line, now)
  if failures ~= "0" then
    redis.call("HINCRBY", q.failures, id, failures)
    count(q.stats, now, "failed", 1)
  end
  add_error(q.errors, id, line)
end
