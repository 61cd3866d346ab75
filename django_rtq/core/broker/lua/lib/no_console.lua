-- no_console: in the place of metrics, held_jobs and task_pauses: of all that can be paused there is the queue.

local count_task_crash = function() end
local hold_paused = function() end
local is_to_hold = function() end
local lowest_held = function() return "inf" end
local open_pauses = function(q) return redis.call("HEXISTS", q.paused, "queue") == 1 end
local return_more = function() end
