-- carrying: what a job takes along to another shard: texts that say where it is, its id, its record, what lies beside it as
-- undo lists it, and its entry in `step_jobs`. Of a job that is over there are three: "finished 0", its id, and its outcome.
-- created when first called
-- uses: unique task_pauses runners undo

-- Where a job is, as `restore` reads it; nil and why, if it has to stay.
local function place_to_carry(q, id)
  local died, due = redis.call("ZSCORE", q.dead, id), redis.call("ZSCORE", q.scheduled, id)
  if died then return "dead " .. died end
  if not due and find_runner(q, id) then return nil, "running" end
  if not due then return "lane 0" end
  local _, _, digest = read_digest(q, id)
  local owner = digest and redis.call("GET", q.unique .. digest)
  if owner and select(4, read_digest(q, owner)) == id and is_successor(q, id) then return nil, "after " .. owner end
  if tonumber(due) >= tonumber(lowest_held()) then return string.format("lane %.0f", held_since(due)) end
  return (redis.call("ZSCORE", q.retrying, id) and "retrying " or "scheduled ") .. due
end

-- The texts of a job, and a stamp that changes with it; nil and why, if it has to stay.
local function pack_job(q, id)
  if redis.call("HEXISTS", q.jobs, id) == 0 then
    local outcome = redis.call("HGET", q.results, id)
    if not outcome then return nil, "missing" end
    return { "finished 0", id, outcome }, redis.sha1hex(outcome)
  end
  local place, reason = place_to_carry(q, id)
  if not place then return nil, reason end
  local parts = read_parts(q, { id }, { place })
  parts[#parts] = redis.call("HGET", q.step_jobs, id) or "" -- in place of the sum of their lengths
  -- A job that does not run gets no more steps than by events.
  local events = redis.call("HGET", q.steps .. id, "sent") or ""
  return parts, redis.sha1hex(table.concat(parts, "\n") .. "\n" .. events)
end
