-- bulk_enqueue: plan the writes for many new jobs.
-- uses: prelude enqueue known_ids waiting

local PLAIN = 8 -- arguments of a job, without those of its digest

-- Plan the jobs from this place on up to one with a digest, unless they are known or do not fit: into a lane, or into
-- `scheduled`. `rooms`: nil if they fit, whatever waits. Returns the place of the next job, too.
local function plan_jobs(q, jobs, place, size, rooms, now, answers)
  local plan = { at = string.format("%.0f", now), lanes = {}, later = {}, later_of = {}, since = {}, records = {} }
  local later, records, ids, next, last = plan.later, plan.records, {}, place, #jobs
  while next <= last and (size == PLAIN or jobs[next + PLAIN] == "") do
    ids[#ids + 1], next = jobs[next], next + size
  end
  local known = find_known(q, ids)
  for i = place, next - size, size do
    local id, band, max_crashes, client, due, expires, front, body = unpack(jobs, i, i + PLAIN - 1)
    local full = rooms and not known[id] and take_place(q, rooms, client)
    answers[#answers + 1] = known[id] and "exists" or full or "ok"
    if not known[id] and not full then
      local ready, at = parse_time(due, now) or now, plan.at
      if due ~= "" then at = string.format("%.0f", ready) end
      if ready > now then
        local theirs = plan.later_of[client] or {}
        plan.later_of[client], theirs[#theirs + 1], theirs[#theirs + 2] = theirs, at, id
        later[#later + 1], later[#later + 2] = at, id
      else
        local name = band .. ":" .. client
        local lane = plan.lanes[name] or { band = band, client = client, first = {}, last = {} }
        if not plan.lanes[name] then plan.lanes[name], plan.lanes[#plan.lanes + 1] = lane, lane end
        local of_lane = front == "1" and lane.first or lane.last
        of_lane[#of_lane + 1] = id
        if not is_recent(id, now) then plan.since[#plan.since + 1], plan.since[#plan.since + 2] = id, plan.at end
      end
      records[#records + 1], records[#records + 2] = id, new_record(band, max_crashes, at, expires, client, body)
      known[id] = true
    end
  end
  return plan, next
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

-- index_lane() for many lanes.
local function index_lanes(q, lanes, at)
  local turn, heads, rings = redis.call("INCRBY", q.turn, #lanes) - #lanes, {}, {}
  for i, lane in ipairs(lanes) do
    heads[#heads + 1], heads[#heads + 2] = at, lane.band .. ":" .. lane.client
    local places = rings[lane.band] or {}
    rings[lane.band] = places
    places[#places + 1], places[#places + 2] = turn + i, lane.client
  end
  add_entries(q.lanes, heads, "NX")
  for band, places in pairs(rings) do
    redis.call("ZADD", q.bands, band, band)
    add_entries(q.ring .. band, places, "NX")
  end
  redis.call("ZADD", q.work_signal, "0", "work")
end

-- Add the planned jobs.
local function add_planned(q, plan, now)
  if #plan.lanes > 0 then index_lanes(q, plan.lanes, plan.at) end
  note_waiting(q, plan.since)
  for _, lane in ipairs(plan.lanes) do
    local name = q.lane .. lane.band .. ":" .. lane.client
    if #lane.last > 0 then redis.call("RPUSH", name, unpack(lane.last)) end
    if #lane.first > 0 then redis.call("LPUSH", name, unpack(lane.first)) end
  end
  if #plan.later > 0 then schedule_many(q, plan.later, plan.later_of) end
  if #plan.records > 0 then
    -- The records last: a torn log then leaves ids without a record, which are dropped, but no job outside of all lanes.
    redis.call("HSET", q.jobs, unpack(plan.records))
    count(q.stats, now, "enqueued", #plan.records / 2)
  end
end
