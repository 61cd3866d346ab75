-- task_history: counters of one task, by the hour. Reads only.
-- uses: prelude
-- keys: clock tasks
-- ARGV[1] hours       how many before the present one, at most 48
-- ARGV[2] task        its name
--
-- returns {now, {hour, kind, number, ...}, ...}: the hours since 1970 with any runs, the oldest first
-- sent twice: changes nothing

local q, hours, task = named(), tonumber(ARGV[1]), ARGV[2]
local counters = { "done", "failed", "crashed", "retried", "dead", "expired" }
local now, SMALL = now_ms(q.clock), 500 -- names of a hash that is read as a whole, which takes less time then
local answer = { now }

local function names_of(kinds)
  local names = {}
  for i, kind in ipairs(kinds) do names[i] = kind .. " " .. task end
  return names
end

-- The buckets of a histogram from the first to the last octave: four in each, and one for no time at all.
local function add_buckets(kinds, letter, first, last)
  kinds[#kinds + 1] = letter .. "0"
  for octave = first, last do
    for eighths = 4, 7 do kinds[#kinds + 1] = letter .. (8 * octave + eighths) end
  end
end

-- Runs take seconds, from 60 ns to half a year; waits take ms, up to half a year, too.
local buckets = {}
add_buckets(buckets, "r", -23, 24)
add_buckets(buckets, "w", 1, 34)
local counter_names, bucket_names = names_of(counters), names_of(buckets)

-- All counters of a small hash, whose names end with the task.
local function read_small(entry, key)
  local found, suffix = redis.call("HGETALL", key), " " .. task
  for i = 1, #found, 2 do
    local kind = string.match(found[i], "^%S+")
    if #found[i] == #kind + #suffix and string.sub(found[i], #kind + 1) == suffix then
      entry[#entry + 1], entry[#entry + 2] = kind, found[i + 1]
    end
  end
end

local function read(entry, key, kinds, names)
  for i, number in ipairs(redis.call("HMGET", key, unpack(names))) do
    if number then entry[#entry + 1], entry[#entry + 2] = kinds[i], number end
  end
end

local present = math.floor(now / HOUR_MS)
for hour = present - hours, present do
  local entry, key = { hour }, q.tasks .. string.format("%.0f", hour)
  if redis.call("HLEN", key) <= SMALL then
    read_small(entry, key)
  else
    read(entry, key, counters, counter_names)
    if #entry > 1 then read(entry, key, buckets, bucket_names) end
  end
  if #entry > 1 then answer[#answer + 1] = entry end
end
return answer
