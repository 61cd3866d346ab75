-- prelude: time, headers of records, counters.

local HOUR_MS, STATS_SECONDS = 3600000, 172800

-- The server's clock in ms.
local function clock_ms()
  local time = redis.call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Returns the time in ms and in tenths of a ms, and the server's clock in ms, which mostly equals the time. With `clock` and
-- `high`, they are not read again.
-- While the clock is behind `high`, because it was put back, time runs at nine tenths of its speed, until both are equal at
-- `high`: from `anchor` on, a time and what the clock showed then. If the clock was put back by an hour or more, it had been
-- wrong before, and its new time is used at once.
local function now_ms(sweep, clock, high)
  clock = clock or clock_ms()
  high = tonumber(high or redis.call("HGET", sweep, "high") or 0)
  if clock >= high then return clock, 10 * clock, clock end
  local tenths, at = string.match(redis.call("HGET", sweep, "anchor") or "", "^(%d+) (%d+)$")
  tenths = (tenths or 10 * high) + 9 * math.max(0, clock - (at or clock))
  local ahead = tenths - 10 * clock
  if ahead <= 0 or ahead >= 10 * HOUR_MS then return clock, 10 * clock, clock end
  return math.floor(tenths / 10), tenths, clock
end

-- Parse the header of a record. An unknown format is treated as a job without a client that may not crash.
local function read_header(record)
  local band, max_crashes, client = string.match(record, "^(%-?%d+%+?) (%d+) %d+ %d+ ([^\n]*)\n")
  return band or "0", client or "", tonumber(max_crashes or 0)
end

-- The name of the task of a job, as records have it in front.
local function task_of(record)
  return string.match(record or "", '^[^\n]*\n{"task":"([^"\\]*)"')
end

-- The key of the list of queues, and the name of the queue that a key belongs to. In a Cluster names differ: see keys.py.
local function queue_of(key)
  local prefix, queue = string.match(key, "^{([^:}]*):([^}]*)}:")
  if not prefix then prefix, queue = string.match(key, "^({[^}]*}:)([^:]*):") end
  return prefix .. ":queues", queue
end

-- Note since when jobs wait: id and time in turn. The first of many gets zeros in front: see assign_jobs.
local function note_waiting(q, since)
  if #since == 0 then return end
  if #since > 64 then since[2] = string.rep("0", 64) .. since[2] end
  redis.call("HSET", q.waiting_since, unpack(since))
end

-- The due time of the first scheduled job.
local function first_due(q)
  return tonumber(redis.call("ZRANGE", q.scheduled, 0, 0, "WITHSCORES")[2] or math.huge)
end

-- Let Redis keep a hash as a table. It keeps one of up to 512 fields as a list, which it searches for each field, unless a value
-- has over 64 bytes; it does not go back to a list when that one is removed, but it may when it starts again.
local function use_table(hash)
  redis.call("HSET", hash, "", string.rep("-", 65))
  redis.call("HDEL", hash, "")
end

-- The same of a zset, to be kept as a skip list; up to 128 members are a list else.
local function use_skip_list(zset)
  local long = string.rep("-", 65)
  redis.call("ZADD", zset, "0", long)
  redis.call("ZREM", zset, long)
end

-- ZADD of entries, which alternate: score, member. Many are added to a skip list.
local function add_entries(key, entries, condition)
  local long = #entries > 64 and string.rep("-", 65)
  if long then redis.call("ZADD", key, "0", long) end
  redis.call("ZADD", key, condition or "CH", unpack(entries))
  if long then redis.call("ZREM", key, long) end
end

-- Add 1 or n to a counter of this minute. The first write of each counter sets the key's expiry. The first enqueue of a
-- minute adds the queue to the list of queues: `forget` may have removed it, and its producers do not know that.
local function count(stats, now, field, n)
  local key = stats .. math.floor(now / 60000)
  if redis.call("HINCRBY", key, field, n) == tonumber(n) then
    redis.call("EXPIRE", key, STATS_SECONDS)
    if field == "enqueued" then
      redis.call("SADD", queue_of(stats))
    end
  end
end
