-- preview: find out whether jobs fit together (max_waiting), before any is added.
-- created when first called
-- uses: enqueue bulk_enqueue unique unique_enqueue known_ids waiting

-- The answers if the jobs do not fit together, else nil. Changes nothing.
local function preview(q, jobs, size)
  local ids = {}
  for i = FIRST, #jobs, size do ids[#ids + 1] = jobs[i] end
  local answers, rooms, seen, is_full, known = {}, {}, {}, false, find_known(q, ids)
  for i = FIRST, #jobs, size do
    local id, client, digest, first, successor = jobs[i], jobs[i + 3], size > PLAIN and jobs[i + PLAIN] or "", nil, nil
    if digest ~= "" then first, successor = unique_owner(q, digest) end
    local answer = (known[id] or seen[id]) and "exists"
    if first and successor == id then answer = "after " .. first end
    if not answer and (seen[digest] or not is_new(q, jobs[i + 11], first, successor)) then
      answer = "duplicate " .. (first or seen[digest])
    end
    local full = not answer and take_place(q, rooms, client)
    answers[#answers + 1] = answer or full or "ok"
    is_full = is_full or full
    if not (answer or full) then seen[id], seen[digest ~= "" and digest or id] = true, id end
  end
  for i, answer in ipairs(is_full and answers or {}) do
    if answer == "ok" then answers[i] = "full" end
  end
  return is_full and answers
end
