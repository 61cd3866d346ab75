-- unique_preview: find out whether unique jobs fit together (max_waiting), before any is added.
-- created when first called
-- uses: enqueue unique unique_enqueue known_ids waiting

-- The answers if the jobs do not fit together, else nil. Changes nothing.
local function preview(q, jobs, now)
  local answers, rooms, seen, is_full = {}, {}, {}, false
  for place = FIRST, #jobs, #PARTS do
    local job, first, successor = read_job(jobs, place, now), nil, nil
    if job.digest ~= "" then first, successor = unique_owner(q, job.digest) end
    local answer = seen[job.id] and "exists" or is_known(q, job.id, is_recent(job.id, now)) and "exists"
    if first and successor == job.id then answer = "after " .. first end
    if not answer and (seen[job.digest] or not is_new(q, job, first, successor)) then
      answer = "duplicate " .. (first or seen[job.digest])
    end
    local full = not answer and take_place(q, rooms, job.client)
    answers[#answers + 1] = answer or full or "ok"
    is_full = is_full or full
    if not (answer or full) then seen[job.id], seen[job.digest ~= "" and job.digest or job.id] = true, job.id end
  end
  return is_full and none_added(answers)
end
