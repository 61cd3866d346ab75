-- call_filter: match arguments of jobs, by name or position, and words, without parsing JSON. What it finds may match: it
-- compares the last name of a path only, and looks for words anywhere in a record. The caller decides.

-- The position behind the JSON value that starts at `at`.
local function skip_value(text, at)
  local depth = 0
  repeat
    local first = string.sub(text, at, at)
    if first == '"' then
      repeat
        at = string.find(text, '["\\]', at + 1) or #text
        local is_escape = string.sub(text, at, at) == "\\"
        at = is_escape and at + 1 or at
      until not is_escape
    elseif first == "[" or first == "{" then
      depth = depth + 1
    elseif first == "]" or first == "}" then
      depth = depth - 1
    elseif depth == 0 then
      at = (string.find(text, "[,%]}]", at) or #text + 1) - 1
    end
    at = at + 1
    if depth > 0 then at = string.find(text, '["%[%]{}]', at) or #text + 1 end
  until depth <= 0 or at > #text
  return at
end

-- Whether one of these texts is at this position.
local function starts_with_any(text, at, values)
  for _, value in ipairs(values) do
    if string.sub(text, at, at + #value - 1) == value then return true end
  end
  return false
end

-- Whether one of the values follows the key anywhere, or is the positional argument that has this name in its task.
local function has_argument(record, term)
  local _, ends = string.find(record, term.key, 1, true)
  while ends do
    if starts_with_any(record, ends + 1, term.values) then return true end
    _, ends = string.find(record, term.key, ends + 1, true)
  end
  local task, at = string.match(record, '^[^\n]*\n{"task":"([^"\\]*)","args":%[()')
  for _ = 1, task and term.places[task] or 0 do
    at = skip_value(record, at) + 1
    if string.sub(record, at - 1, at - 1) ~= "," then return false end
  end
  return task ~= nil and term.places[task] ~= nil and starts_with_any(record, at, term.values)
end

-- Whether one of the spellings of a word is there.
local function has_word(text, spellings)
  for _, word in ipairs(spellings) do
    if string.find(text, word, 1, true) then return true end
  end
  return false
end

-- Match all arguments and words. Words may also be in the newest failure, or in the id.
local function matches_call(call, record, failure, id)
  for _, term in ipairs(call.arguments) do
    if not has_argument(record, term) then return false end
  end
  for _, spellings in ipairs(call.words) do
    local is_there = has_word(record, spellings) or has_word(failure, spellings) or has_word(id, spellings)
    if not is_there then return false end
  end
  return true
end
