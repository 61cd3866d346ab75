-- failures: store and read the failures of jobs.

local KEPT_ERRORS = 5 -- for each job; older ones are dropped

-- Append a failure, one line of JSON, to the stored failures of a job.
local function add_error(errors, id, line)
  local lines = (redis.call("HGET", errors, id) or "") .. line .. "\n"
  while select(2, string.gsub(lines, "\n", "")) > KEPT_ERRORS do lines = string.match(lines, "\n(.*)") end
  redis.call("HSET", errors, id, lines)
end

-- The position at which the newest of the stored failures starts.
local function start_of_newest(lines)
  local start, ends = 1, string.find(lines, "\n", 1, true) -- plain: a pattern would examine every character
  while ends and ends < #lines do
    start, ends = ends + 1, string.find(lines, "\n", ends + 1, true)
  end
  return start
end

-- Whether the newest failure of a job has the same class as this one.
local function is_same_error(errors, id, line)
  local lines, class = redis.call("HGET", errors, id) or "", string.match(line, '"error_class":"[^"]*"')
  return class and string.find(lines, class, start_of_newest(lines), true)
end

-- Store a failed run. Returns what it counts: 0 if this worker could not run the job at all.
local function record_failure(q, id, failures, line)
  if failures ~= "0" then redis.call("HINCRBY", q.failures, id, failures) end
  add_error(q.errors, id, line)
  return tonumber(failures)
end
