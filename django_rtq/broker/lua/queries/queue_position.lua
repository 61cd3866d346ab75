-- queue_position: what a job waits for, and its position in its lane. Reads only. It reads no more than DEEP jobs.
-- uses: prelude unique
-- keys: clock jobs paused workers lane scheduled retrying digests unique
-- ARGV[1] id          the job
--
-- returns {now, paused since, workers whose lease lasts, 100 at most, its position in its lane, from 0, the job for
--         whose end it waits, last run of promote}; "" where there is none
-- sent twice: changes nothing

local q, id = named(), ARGV[1]
local DEEP = 1000
local now, record = now_ms(q.clock), redis.call("HGET", q.jobs, id)

local function place_in_lane()
  local band, client = read_header(record or "")
  local lane = q.lane .. band .. ":" .. client
  return redis.call("LPOS", lane, id, "MAXLEN", DEEP) or (redis.call("LLEN", lane) > DEEP and DEEP or "")
end

local function find_predecessor()
  local _, _, digest = read_digest(q, id)
  local first = digest and redis.call("GET", q.unique .. digest)
  return first and first ~= id and is_successor(q, id) and select(4, read_digest(q, first)) == id and first or ""
end

local alive = #redis.call("ZRANGEBYSCORE", q.workers, now, "+inf", "LIMIT", 0, 100)
local promoted = redis.call("HGET", q.clock, "promoted") or ""
return { now, redis.call("GET", q.paused) or "", alive, place_in_lane(), find_predecessor(), promoted }
