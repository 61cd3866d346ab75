-- no_limits: in the place of limits, blocking, preview, rates, running_counts, virtual_turns and waiting. Limits that
-- are stored have no effect.

local are_timed = function() end
local block = function() end
local count_ended = function() end
local count_started = function() end
local has_waiting = function() end
local is_full = function() end
local open_limits = function(q) q.has_limits = false return math.huge end
local preview = function() end
local read_rooms = function() end
local recount = function() end
local remove_past = function() end
local resume_due = function() end
local take_place = function() end
local take_virtual_turns = function() end
local unblock = function() end
local wait_for_rates = function() end
