-- enqueue_many: add many jobs, each once however often it is sent.
-- — -> queued, or scheduled when it has a time
-- uses: prelude bulk_enqueue known_ids waiting
-- keys: jobs finished finished_before cancelled_in_lane scheduled bands turn lanes waiting_since work_signal due_signal clock
--       ring lane stats scheduled_by_client waiting_limits dead running_counts blocked
-- ARGV[1] together    "1": add all jobs or none, else ""
-- ARGV[...] jobs      of each, as in enqueue: id, band, max_crashes, client, due ("+ms" from now, "ms" since 1970,
--                     "" now), expires ("+ms" after it is due), front, body; at most 500
--
-- returns for each job "ok"; "exists" if its id is known: live, or finished lately; "full queue" or "full client" with how
--         many wait and may wait; "full" if it was not added because another did not fit
-- sent twice: every id exists the second time, and nothing changes

local q, together, jobs = named(), ARGV[1] == "1", ARGV
local now = now_ms(q.clock)

-- index_lane() for many lanes.
local function index_lanes(lanes, at)
  local turn, heads, rings = redis.call("INCRBY", q.turn, #lanes) - #lanes, {}, {}
  for i, lane in ipairs(lanes) do
    heads[#heads + 1], heads[#heads + 2] = at, lane.band .. ":" .. lane.client
    local places = rings[lane.band] or {}
    rings[lane.band] = places
    places[#places + 1], places[#places + 2] = turn + i, lane.client
  end
  redis.call("ZADD", q.lanes, "NX", unpack(heads))
  for band, places in pairs(rings) do
    redis.call("ZADD", q.bands, band, band)
    redis.call("ZADD", q.ring .. band, "NX", unpack(places))
  end
  redis.call("ZADD", q.work_signal, "0", "work")
end

local plan = plan_jobs(q, jobs, find_known(q, ids_of(jobs)), now)
if together and plan.is_full then return none_added(plan.answers) end
if #plan.lanes > 0 then index_lanes(plan.lanes, plan.at) end
if #plan.since > 0 then redis.call("HSET", q.waiting_since, unpack(plan.since)) end
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
return plan.answers
