-- claim_lane: give a worker more jobs of a client, beside one that it has just claimed, for a function that gets many jobs at
-- once. Each counts as a turn of the client: it comes again when the others have had as many.
-- uses: prelude claim turns assign blocking limits task_pauses virtual_turns
-- KEYS[2] running     the worker's processing list
-- ARGV[1] worker      its name
-- ARGV[2] wanted      jobs, at most 500
-- ARGV[3] band        of the lane
-- ARGV[4] client      of the lane
-- ARGV[5] task        its name: the first job of another task ends it, and so does one that has crashed a worker
--
-- returns as claim does, and no stale ids
-- sent twice: gives more jobs; those whose reply was lost the worker finds in `running` and releases

local q, worker, wanted, band, client, task = named(), ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local ring, lane, reply = q.ring .. band, q.lane .. band .. ":" .. client, { 0 }
q.now = now_ms(q.clock)

local function exists(key)
  return redis.call("EXISTS", key) == 1
end

-- The ids at the front of the lane that the worker may have, and the head of the lane behind them.
local function read_ids(most)
  if q.has_cancelled_in_lane or q.pauses then skip_first(q, { may_skip = 500, may_hold = 200 }, band .. ":" .. client) end
  local line, ids = redis.call("LRANGE", lane, "0", most), {} -- one more: the next head
  local crashes = #line > 0 and q.has_crashes and redis.call("HMGET", q.crashes, unpack(line)) or {}
  for i, record in ipairs(#line > 0 and redis.call("HMGET", q.jobs, unpack(line)) or {}) do
    if #ids == most or crashes[i] or not record or task_of(record) ~= task then break end
    ids[i] = line[i]
  end
  return ids, line
end

if not redis.call("ZRANK", q.workers, worker) then
  begin_answer(q, 1, "unknown", reply)
  return reply
end
q.has_failures, q.has_crashes, q.has_waiting_since = exists(q.failures), exists(q.crashes), exists(q.waiting_since)
q.has_cancelled_in_lane, q.has_limits = exists(q.cancelled_in_lane), exists(q.limits)
q.runner = exists(q.runners) and worker
local room = q.has_limits and open_limits(q) or wanted
local turn = redis.call("ZSCORE", ring, client)
if (exists(q.paused) and open_pauses(q)) or not turn or turn == "inf" then return reply end
if q.has_limits then room = math.min(room, read_rooms(q, { client })[1]) end
if room <= 0 then return reply end -- below 0: a limit was lowered
local ids, line = read_ids(math.min(wanted, room))
if #ids == 0 then return reply end

local owners, counts, head = {}, {}, begin_answer(q, 1, "ok", reply)
for i = 1, #ids do owners[i] = client end
local turns = { clients = { client }, lanes = { lane }, lines = { line }, taken = { #ids }, stays = q.has_weights and { true } }
turns.scores = { [client] = turn_behind(q, band, client, tonumber(turn), #ids) }
assign_jobs(q, ids, owners, reply, head, counts)
q.has_more = end_turns(q, band, turns)
if q.has_waiting_since then redis.call("HDEL", q.waiting_since, unpack(ids)) end
end_answer(q, reply, head, "ok", counts)
signal_rest(q)
return reply
