-- apply_settings: store the limits of the settings of a worker or producer, unless other settings were stored since it read
-- them. Clients that are blocked stay so until check_blocked, or until one of their jobs ends.
-- uses: limit_sources
-- keys: limits waiting_limits limit_sources settings_stamp running_counts blocked bands work_signal scratch jobs signed_on
--       running_of turn ring rate_times next_starts job_times clock paused_clients
-- ARGV[1] expected    what the caller has read in `settings_stamp`; "": nothing
-- ARGV[2] stamp       what it says from now on
-- ARGV[...] entries   field of `limit_sources` and its text in turn: "name=value ...", or "" to remove it
--
-- returns the number of blocked clients; -1: others have stored theirs, and nothing changes
-- sent twice: nothing changes the second time

local q, expected, stamp, entries = named(), ARGV[1], ARGV[2], ARGV
local FIRST_ENTRY = 3
local stored = redis.call("GET", q.settings_stamp) or ""

if stored ~= expected and stored ~= stamp then return -1 end
redis.call("DEL", q.scratch) -- lets a full server be drained
local changes = begin_changes(q)
for i = FIRST_ENTRY, #entries, 2 do set_source(q, changes, entries[i], entries[i + 1]) end
if #entries >= FIRST_ENTRY then end_changes(q, changes) end
redis.call("SET", q.settings_stamp, stamp) -- last: after a torn log it is written again
if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end
return redis.call("HLEN", q.blocked)
