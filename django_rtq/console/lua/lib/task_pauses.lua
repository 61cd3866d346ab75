-- task_pauses: tasks whose jobs wait. `paused` has for each "task:<name>": "<number> <since when, ms> <who>"; after the pause
-- only "<number>", until the jobs that it held are back in their lanes, see held_jobs.
-- created when first called
-- uses: prelude

local SPAN, FIRST_PAUSE, LAST_PAUSE = 1e13, 100, 199 -- scores of a pause: see held_jobs; numbers of pauses

-- The entry of the task of a job, if it is paused; else "".
local function pause_of(q, record)
  local task = task_of(record)
  local entry = task and redis.call("HGET", q.paused, "task:" .. task)
  return entry and string.find(entry, " ", 1, true) and entry or ""
end

-- Begin a claim where something is paused. Returns whether it is the queue.
local function open_pauses(q)
  local entries, numbers, is_paused = redis.call("HGETALL", q.paused), {}, false
  for i = 1, #entries, 2 do
    local task, number = string.match(entries[i], "^task:(.*)$"), string.match(entries[i + 1], "^(%d+) ")
    if task and number then numbers[task] = tonumber(number) end
    is_paused = is_paused or entries[i] == "queue"
  end
  q.pauses = next(numbers) and numbers
  return is_paused
end

-- A number that no pause has, or nothing.
local function free_number(q)
  local entries, is_taken = redis.call("HGETALL", q.paused), {}
  for i = 2, #entries, 2 do is_taken[string.match(entries[i], "^%d+")] = true end
  for number = FIRST_PAUSE, LAST_PAUSE do
    if not is_taken[tostring(number)] then return number end
  end
end

-- The score in `scheduled` of a job that a pause holds, and that waits since `since`.
local function held_score(number, since)
  return number * SPAN + since
end

-- The lowest score of what a pause holds, and the highest, excluded.
local function scores_of(entry)
  local number = string.match(entry, "^%d+")
  return string.format("%.0f", number * SPAN), string.format("(%.0f", (number + 1) * SPAN)
end

-- Above all times.
local function lowest_held()
  return string.format("%.0f", FIRST_PAUSE * SPAN)
end
