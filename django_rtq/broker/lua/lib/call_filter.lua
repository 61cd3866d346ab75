-- call_filter: look for words anywhere in jobs, without parsing JSON. What it finds may match: the caller decides.

-- Whether one of the spellings of a word is there.
local function has_word(text, spellings)
  for _, word in ipairs(spellings) do
    if string.find(text, word, 1, true) then return true end
  end
  return false
end

-- Whether all words are in the record, the newest failure, or the id.
local function has_words(words, record, failure, id)
  for _, spellings in ipairs(words) do
    local is_there = has_word(record, spellings) or has_word(failure, spellings) or has_word(id, spellings)
    if not is_there then return false end
  end
  return true
end
