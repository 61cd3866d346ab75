-- no_workflows: in the place of members and steps: no job is a member, remembers or waits.

local forget_steps = function() end
local has_waited = function() end
local note_members = function() end
local suspend = function() end
