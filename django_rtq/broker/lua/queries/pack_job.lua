-- pack_job: all that a job takes along to another shard. Reads only.
-- uses: carrying
-- keys: jobs results dead scheduled retrying workers running_of runners signed_on digests unique failures crashes errors
--       waiting_since progress step_jobs steps log
-- ARGV[1] id          the job
--
-- returns {stamp, its texts, its finished steps and events, the lines that it logged, for how many ms these are kept
--         (below 0: as long as the job)}; or {"", why it has to stay}: "missing", "running"; "after <id>": it waits for the
--         end of that job
-- sent twice: changes nothing

local q, id = named(), ARGV[1]
local parts, stamp = pack_job(q, id)
if not parts then return { "", stamp } end
return {
  stamp,
  parts,
  redis.call("HGETALL", q.steps .. id),
  redis.call("LRANGE", q.log .. id, 0, -1),
  redis.call("PTTL", q.log .. id),
}
