-- receive_job: store a job that another shard is about to hand over. It is on hold here: nobody sees it until admit_job.
-- — -> on hold
-- uses: prelude known_ids
-- keys: jobs results finished finished_before carried arrivals arriving steps log
-- ARGV[1] id          the job
-- ARGV[2] shard       the number of its shard
-- ARGV[3] call        a name for the present `rtq_shards drain` of that shard
-- ARGV[4] log_ms      how long the lines are kept that it logged; below 0: as long as the job
-- ARGV[5] texts       how many texts of the job follow
-- ARGV[6] steps       how many texts of its steps follow these
-- ARGV[...] parts     the texts of the job, of its steps, and the lines that it logged
--
-- returns "held"; "there": the job is here already; "outdated": another drain of that shard has begun
-- sent twice: "held", and nothing changes

local q, id, shard, call, log_ms = named(), ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local texts, steps, parts = tonumber(ARGV[5]), tonumber(ARGV[6]), { select(7, unpack(ARGV)) }

if redis.call("HGET", q.arrivals, "from " .. shard) ~= call then return "outdated" end
-- What this shard has handed over itself may come back.
local was_here = redis.call("HEXISTS", q.carried, id) == 0 and has_ended(q, id)
if was_here or redis.call("HEXISTS", q.jobs, id) == 1 then return "there" end

redis.call("SADD", queue_of(q.jobs)) -- first: it is refused while memory is full
redis.call("DEL", q.arriving .. id, q.steps .. id, q.log .. id)
if steps > 0 then
  redis.call("HSET", q.steps .. id, unpack(parts, texts + 1, texts + steps))
  redis.call("HSET", q.steps .. id, "aside", parts[texts])
end
if #parts > texts + steps then redis.call("RPUSH", q.log .. id, unpack(parts, texts + steps + 1)) end
if log_ms > 0 then redis.call("PEXPIRE", q.log .. id, log_ms) end
redis.call("RPUSH", q.arriving .. id, unpack(parts, 1, texts))
redis.call("HSET", q.arrivals, id, shard)
return "held"
