-- discard: delete dead letters.
-- uses: prelude outcomes members
-- ARGV[1] latest      jobs that died later are left alone, ms
-- ARGV[...] ids       at most 100
--
-- returns the ids that were deleted; the others are not dead (any more)
-- sent twice: none is dead the second time, and nothing changes

local q, latest, ids = named(), tonumber(ARGV[1]), { select(2, unpack(ARGV)) }
local dead = {}

for i, died in ipairs(#ids > 0 and redis.call("ZMSCORE", q.dead, unpack(ids)) or {}) do
  if died and tonumber(died) <= latest then dead[#dead + 1] = ids[i] end
end
if #dead == 0 then return dead end
note_members(q, dead, "gone")
delete_jobs(q, dead)
expire_logs(q, dead, 0)
redis.call("ZREM", q.dead, unpack(dead))
count(q.stats, now_ms(q.clock), "discarded", #dead)
return dead
