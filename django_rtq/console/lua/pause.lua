-- pause: stop claims of a queue, or of the jobs of one task, until it is resumed. Running jobs go on. Claims move those of a
-- paused task that they meet to `scheduled`, where they are never due.
-- uses: prelude task_pauses
-- ARGV[1] task        its name; "": the queue
-- ARGV[2] by          who pauses it; "": not known
--
-- returns "paused", "already", or "full": too many tasks are paused
-- sent twice: "already", and nothing changes

local q, task, by = named(), ARGV[1], ARGV[2]
local field = task == "" and "queue" or "task:" .. task
local entry = redis.call("HGET", q.paused, field)
if entry and (task == "" or string.find(entry, " ", 1, true)) then return "already" end
local number = task == "" and "" or entry or free_number(q)
if not number then return "full" end

redis.call("HSET", q.paused, field, string.match(string.format("%s %.0f %s", number, now_ms(q.clock), by), "^ ?(.-) ?$"))
return "paused"
