-- pause_task: let the jobs of one task wait until it is resumed. Claims move those that they meet to `scheduled`, where they
-- are never due. Running jobs go on.
-- uses: prelude task_pauses
-- keys: paused clock scratch
-- ARGV[1] task        its name
-- ARGV[2] by          who pauses it, or ""
--
-- returns "paused", "already", or "full": too many tasks are paused
-- sent twice: "already", and nothing changes

local q, task, by = named(), ARGV[1], ARGV[2]
local field = "task:" .. task
local entry = redis.call("HGET", q.paused, field)
if entry and string.find(entry, " ", 1, true) then return "already" end
local number = entry or free_number(q)
if not number then return "full" end

redis.call("DEL", q.scratch) -- lets a full server be drained
redis.call("HSET", q.paused, field, number .. string.format(" %.0f ", now_ms(q.clock)) .. by)
return "paused"
