-- filter: match jobs against a filter, see search_jobs.lua, by short fields of their records and failures.
-- uses: prelude failures members

-- Whether a string in JSON is this name, or ends with it after a dot; "=" before the name stands for the whole name. Nil if
-- it contains escapes, which this does not decode.
local function matches_name(raw, name)
  if name == "" then return true end
  if string.find(raw, "\\", 1, true) then return nil end
  if string.sub(name, 1, 1) == "=" then return raw == string.sub(name, 2) end
  return raw == name or string.sub(raw, -#name - 1) == "." .. name
end

-- Match the record: its task, its client, and the time from which on it could start, as far as the filter asks.
local function matches_record(wanted, record)
  if wanted.client ~= "" and wanted.client ~= "=" .. select(2, read_header(record)) then return false end
  if wanted.since or wanted.till then
    local ready = tonumber(string.match(record, "^%S+ %S+ (%d+) ") or 0)
    if ready < (wanted.since or ready) or ready > (wanted.till or ready) then return false end
  end
  if wanted.task == "" then return true end
  local raw = string.match(record, '^[^\n]*\n{"task":"([^"]*)"') or ""
  for name in string.gmatch(wanted.task, "[^\n]+") do
    local fits = matches_name(raw, name)
    if fits ~= false then return fits end
  end
  return false
end

-- The text between the quotes behind this word, up to the first quote; nil if the word is missing.
local function text_after(lines, word, start)
  local _, ends = string.find(lines, word, start, true) -- plain: a pattern would examine every character
  return ends and string.match(lines, '^[^"]*', ends + 1)
end

-- Match the newest failure: its class, and a part of its message or class.
local function matches_failure(wanted, lines, newest)
  if lines == "" then return false end
  local class = text_after(lines, '"error_class":"', newest) or ""
  local fits = matches_name(class, wanted.class)
  if fits == false or wanted.text == "" then return fits end
  local message = text_after(lines, '"error":"', newest)
  if not message or string.find(class .. message, "\\", 1, true) then return nil end
  return fits and (string.find(message, wanted.text, 1, true) ~= nil or matches_name(class, wanted.text))
end

-- Whether one of the spellings of a text is anywhere in one of these.
local function has_text(spellings, places)
  for _, spelling in ipairs(spellings) do
    for _, place in ipairs(places) do
      if string.find(place, spelling, 1, true) then return true end
    end
  end
  return false
end

-- Returns {position, whether it surely matches} of the ids that match, and of those that cannot be decided here, such as what
-- has one of `wanted.spellings`. And how many bytes were read.
local function match_jobs(q, wanted, ids)
  local found, left, places, read = {}, {}, {}, 0
  local asks, spellings = wanted.class ~= "" or wanted.text ~= "", wanted.spellings
  local is_any = wanted.task .. wanted.client == "" and not asks and #spellings == 0
  if is_any and not wanted.since and not wanted.till then
    for i = 1, #ids do found[i] = { i, true } end
    return found, read
  end
  local records = #ids > 0 and redis.call("HMGET", q.jobs, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    local fits = matches_record(wanted, records[i] or "")
    read = read + #(records[i] or "")
    if fits ~= false then left[#left + 1], places[#left + 1] = id, { i, fits } end
  end
  local reads = (asks or #spellings > 0) and #left > 0
  local failures = reads and redis.call("HMGET", q.errors, unpack(left)) or {}
  for n, place in ipairs(places) do
    local i, fits, lines = place[1], place[2], failures[n] or ""
    local newest = start_of_newest(lines)
    local fails = not asks or matches_failure(wanted, lines, newest)
    if #spellings > 0 and fails ~= false then
      local ends = string.find(lines, '"traceback":', newest, true)
      local failure = string.sub(lines, newest, ends and ends - 1 or -1)
      fails = has_text(spellings, { records[i] or "", failure, left[n] }) and nil
    end
    if fails ~= false then found[#found + 1] = { i, fits and fails } end
  end
  return found, read
end

-- The lines of a text.
local function read_lines(text)
  local lines = {}
  for line in string.gmatch(text, "[^\n]+") do
    lines[#lines + 1] = line
  end
  return lines
end

-- A beginning of an id, and ids of workflows, a line each; without workflows: any jobs.
local function read_ids(lines)
  local prefix, rest = string.match(lines, "^([^\n]*)(.*)$")
  local flows = rest ~= "" and {}
  for flow in string.gmatch(rest, "[^\n]+") do
    flows[flow] = true
  end
  return { prefix = prefix, flows = flows }
end

-- Whether an id begins so, and is that of a member of one of these workflows: see lib/members.lua.
local function matches_id(wanted, id)
  if string.sub(id, 1, #wanted.prefix) ~= wanted.prefix then return false end
  if not wanted.flows then return true end
  return is_member(id) and wanted.flows[string.sub(id, 14, 16) .. string.sub(id, 18, 26)] ~= nil
end
