-- task_history: counters of one task, by the hour. Reads only.
-- uses: prelude
-- ARGV[1] hours       how many before the present one have to do with the mark, at most 48
-- ARGV[2] task        its name; "": all tasks, by version only
-- ARGV[3] start       the first hour since 1970 that is told; "0": the present one, and the versions
-- ARGV[4] most        so many hours from there
--
-- returns {mark, now, versions, line, ...}: a line for each hour with any counters: the hour since 1970, kind, number, ...,
--         separated by spaces. The mark, which is the same while nothing changes in the hours before: the present hour, and
--         how many keys there are of those. Of each version of the project: its name, since when it runs (ms), and such a
--         line without the hour

local q, hours, task, start, most = named(), tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now = now_ms(q.clock)

local function names_of(kinds)
  local names = {}
  for i, kind in ipairs(kinds) do names[i] = kind .. " " .. task end
  return names
end

-- The counters of outcomes, and the buckets of histograms: four in each octave, and one for no time at all. Runs take
-- seconds, from 60 ns to half a year; waits take ms, up to half a year, too.
local function add_buckets(kinds, letter, first, last)
  kinds[#kinds + 1] = letter .. "0"
  for octave = first, last do
    for eighths = 4, 7 do kinds[#kinds + 1] = letter .. (8 * octave + eighths) end
  end
end
local outcomes = { "done", "failed", "crashed", "retried", "dead", "expired" }
local outcome_names, kinds, names = names_of(outcomes), { unpack(outcomes) }, nil

-- The text of an hour; nil if nothing is counted.
local function read_counters(key)
  for _, number in ipairs(redis.call("HMGET", key, unpack(outcome_names))) do
    if number then
      if not names then -- of most queues and tasks nothing is counted
        add_buckets(kinds, "r", -23, 24)
        add_buckets(kinds, "w", 1, 34)
        names = names_of(kinds)
      end
      local parts = {}
      for i, counter in ipairs(redis.call("HMGET", key, unpack(names))) do
        if counter then parts[#parts + 1] = kinds[i] .. " " .. counter end
      end
      return table.concat(parts, " ")
    end
  end
end

local present, past = math.floor(now / HOUR_MS), {}
for hour = present - hours, present - 1 do past[#past + 1] = q.tasks .. hour end
local there = #past > 0 and redis.call("EXISTS", unpack(past)) or 0
local answer = { string.format("%.0f %.0f", present, there), now, {} }
local seen = start == 0 and redis.call("ZREVRANGE", q.run_versions, 0, -1, "WITHSCORES") or {}
for i = 1, #seen, 2 do
  local text = read_counters(q.tasks .. "v" .. seen[i])
  for _, word in ipairs(text and { seen[i], seen[i + 1], text } or {}) do table.insert(answer[3], word) end
end

if start == 0 then start = present end
for hour = start, start + most - 1 do
  local text = read_counters(q.tasks .. hour)
  if text then answer[#answer + 1] = string.format("%.0f ", hour) .. text end
end
return answer
