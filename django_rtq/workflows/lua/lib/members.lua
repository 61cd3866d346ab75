-- members: jobs that belong to a workflow. When they end it is noted in their queue, for advance_workflow.
--
-- The id of a member is a UUID of version 8, where other jobs have 7: 12 digits of time, "8", 3 digits of the workflow, "9" if
-- other steps take its result, else "8", 9 digits of the workflow, and 6 of its number.
-- created when first called

-- Whether a job is a member: `is_member` in core/jobs/job.py says the same.
local function is_member(id)
  local variant = string.byte(id, 17) -- "b" in an id of version 8 that names a shard
  return #id == 32 and string.byte(id, 13) == 56 and (variant == 56 or variant == 57)
end

-- Note how those of these jobs that are members have ended, or that they are "open" again. The first of many gets spaces,
-- because Redis searches short hashes as lists: see assign.lua.
local function note_members(q, ids, how)
  local notes, n = {}, 0
  for i = 1, #ids do
    if is_member(ids[i]) then
      notes[n + 1], notes[n + 2], n = ids[i], how, n + 2
    end
  end
  if n > 64 then notes[2] = how .. string.rep(" ", 64) end
  if n > 0 then redis.call("HSET", q.ended_members, unpack(notes)) end
end
