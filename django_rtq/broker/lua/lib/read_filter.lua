-- read_filter: read a filter from the arguments of a script.

-- Read what is wanted, a line each: "a" and the key of an argument, "v" and a value that it may have, "p", a position and
-- the task that has it there; "w" begins a word, "s" and how it may be spelled.
local function read_call(lines)
  local call, last = { arguments = {}, words = {} }, nil
  for kind, text in string.gmatch(lines, "(%l)([^\n]*)\n") do
    if kind == "a" then
      last = { key = text, values = {}, places = {} }
      call.arguments[#call.arguments + 1] = last
    elseif kind == "v" then
      last.values[#last.values + 1] = text
    elseif kind == "p" then
      local place, task = string.match(text, "^(%d+) (.*)$")
      last.places[task] = tonumber(place)
    elseif kind == "w" then
      last = {}
      call.words[#call.words + 1] = last
    else
      last[#last + 1] = text
    end
  end
  return call
end

-- A filter from the arguments of a script: see filter_jobs.lua.
local function read_filter(task, client, class, text, since, till, bytes, call)
  return {
    task = task,
    client = client,
    class = class,
    text = text,
    since = tonumber(since),
    till = tonumber(till),
    bytes = tonumber(bytes),
    call = call ~= "" and read_call(call),
  }
end
