-- call_filter: match the arguments of jobs, and words, without parsing JSON. What it finds may match: it compares the last
-- name of a path only, and looks for words anywhere in a record. The caller decides.
-- uses: arguments

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
