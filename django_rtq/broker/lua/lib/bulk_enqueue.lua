-- bulk_enqueue: plan the writes for many new jobs.
-- uses: schedule enqueue waiting

local FIELDS = 8

local function ids_of(jobs)
  local ids = {}
  for i = FIRST, #jobs, FIELDS do ids[#ids + 1] = jobs[i] end
  return ids
end

-- Plan to append a job to its lane, or to put it in front.
local function plan_lane(plan, id, band, client, front, now)
  local name = band .. ":" .. client
  if not is_recent(id, now) then plan.since[#plan.since + 1], plan.since[#plan.since + 2] = id, plan.at end
  local lane = plan.lanes[name]
  if not lane then
    lane = { band = band, client = client, first = {}, last = {} }
    plan.lanes[name], plan.lanes[#plan.lanes + 1] = lane, lane
  end
  local ids = front and lane.first or lane.last
  ids[#ids + 1] = id
end

-- Plan each job that is not known yet, and fits: into a lane, or into `scheduled`.
local function plan_jobs(q, jobs, known, now)
  local plan = { at = string.format("%.0f", now), answers = {}, lanes = {}, later = {}, later_of = {}, since = {}, records = {} }
  local later, records = plan.later, plan.records
  local rooms = redis.call("EXISTS", q.waiting_limits) == 1 and {}
  for i = FIRST, #jobs, FIELDS do
    local id, band, max_crashes, client, due, expires, front, body = unpack(jobs, i, i + FIELDS - 1)
    local full = rooms and not known[id] and take_place(q, rooms, client)
    plan.is_full = plan.is_full or full
    plan.answers[#plan.answers + 1] = known[id] and "exists" or full or "ok"
    if not known[id] and not full then
      local ready, at = parse_time(due, now) or now, plan.at
      if due ~= "" then at = string.format("%.0f", ready) end
      if ready > now then
        local theirs = plan.later_of[client] or {}
        plan.later_of[client], theirs[#theirs + 1], theirs[#theirs + 2] = theirs, at, id
        later[#later + 1], later[#later + 2] = at, id
      else
        plan_lane(plan, id, band, client, front == "1", now)
      end
      records[#records + 1], records[#records + 2] = id, new_record(band, max_crashes, at, expires, client, body)
      known[id] = true
    end
  end
  return plan
end

-- schedule() for many jobs: due and id alternate, for all jobs and by client.
local function schedule_many(q, entries, of_clients)
  local next_due, looks = first_due(q), {}
  local earliest = next_due
  for client, theirs in pairs(of_clients) do
    local first = theirs[1]
    for i = 3, #theirs, 2 do first = math.min(first, theirs[i]) end
    looks[#looks + 1], looks[#looks + 2] = first, client
    earliest = math.min(earliest, first)
  end
  redis.call("ZADD", q.scheduled, unpack(entries))
  redis.call("ZADD", q.scheduled_by_client, "LT", unpack(looks))
  for client, theirs in pairs(of_clients) do redis.call("ZADD", q.scheduled_by_client .. ":" .. client, unpack(theirs)) end
  if earliest < next_due then redis.call("ZADD", q.due_signal, 0, "due") end
end
