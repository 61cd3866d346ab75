-- claim: decide which jobs of a lane a claim may take.
-- created when first called
-- uses: prelude lanes held_jobs

-- Add a client to those of a queue that get no job in this claim.
local function add_aside(aside, client)
  aside = aside or { n = 0, bands = 0, is_aside = {} }
  aside.n, aside.is_aside[client] = aside.n + 1, true
  return aside
end

-- Remove these clients from a list in which every `step`-th entry is a client. If no other is left, the claim goes on with
-- the next band.
local function leave_aside(q, list, step)
  local n = 0
  for i = 1, #list, step do
    if not q.aside.is_aside[list[i]] then
      for j = 0, step - 1 do list[n + 1 + j] = list[i + j] end
      n = n + step
    end
  end
  if n == 0 then q.aside.bands = q.aside.bands + 1 end
  for i = #list, n + 1, -1 do list[i] = nil end
end

-- Whether a suspect, a job that has crashed a worker, may run beside the jobs that this claim has taken. After its first
-- crash it runs beside half as many jobs as there are slots, after the second a quarter; alone, when one more crash would
-- make it dead. So no job becomes dead because of the crashes of others.
local function may_join(q, claim, id, taken)
  local found = redis.call("HGET", q.crashes, id)
  if not found then return claim.suspects == 0 end
  local crashes = tonumber(found)
  local _, _, max_crashes = read_header(redis.call("HGET", q.jobs, id) or "")
  local most = crashes >= max_crashes and 1 or math.max(1, math.floor(claim.slots / 2 ^ crashes))
  most = math.min(most, claim.slots, claim.most)
  if claim.suspects >= most or (claim.suspects == 0 and taken > 0) then return false end
  claim.suspects, claim.most = claim.suspects + 1, most
  return true
end

-- Let jobs that are cancelled, or whose task is paused, leave the front of a lane, before a claim reads it. The client keeps
-- its turn.
local function skip_first(q, claim, lane)
  if q.has_cancelled_in_lane and claim.may_skip > 0 then
    claim.may_skip = claim.may_skip - select(2, skip_cancelled(q, lane, claim.may_skip, q.now))
  end
  if q.pauses then hold_paused(q, claim, lane) end
end

-- Whether a job further behind in a lane has to leave it first.
local function is_to_skip(q, id)
  if q.has_cancelled_in_lane and redis.call("HEXISTS", q.jobs, id) == 0 then return true end
  return q.pauses and is_to_hold(q, id)
end
