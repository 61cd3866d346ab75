-- discard: delete dead letters, or set them aside for a while, from where `restore` puts them back.
-- dead -> gone
-- uses: prelude outcomes undo members steps
-- keys: dead jobs failures crashes errors waiting_since retrying clock scratch stats waiters finished_signal
--       scheduled due_signal digests unique cancel_requests progress scheduled_by_client undo undos log ended_members
--       step_jobs steps
-- ARGV[1] latest      jobs that died later are left alone, ms
-- ARGV[2] undo        "": they cannot be restored. Or "<token> <for how many ms> <jobs> <bytes that may be set aside>"
-- ARGV[...] ids       at most 100
--
-- returns the ids that were deleted; the others are not dead (any more). With `undo` the call ends after some jobs if they are
--         large, after one at least: then those behind the last deleted one have to be sent again
-- sent twice: none is dead the second time, and nothing changes, unless the first call ended before: then it goes on

local q, latest, undo, ids = named(), tonumber(ARGV[1]), ARGV[2], { select(3, unpack(ARGV)) }
local dead, places = {}, {}

for i, died in ipairs(#ids > 0 and redis.call("ZMSCORE", q.dead, unpack(ids)) or {}) do
  if died and tonumber(died) <= latest then
    dead[#dead + 1], places[#places + 1] = ids[i], "dead " .. died
  end
end
if #dead == 0 then return dead end
local gone = undo == "" and dead or { unpack(dead, 1, count_copied(q, dead)) }
redis.call("DEL", q.scratch) -- lets a full server be drained
if undo ~= "" then set_aside(q, undo, gone, places) end
note_members(q, gone, "gone")
keep_steps(q, undo, gone)
delete_jobs(q, gone)
expire_logs(q, gone, log_ms(undo))
redis.call("ZREM", q.dead, unpack(gone))
count(q.stats, now_ms(q.clock), "discarded", #gone)
return gone
