-- count_lanes: how many jobs there are in some lanes, and in the indexes of delayed jobs of some clients. Reads only.
-- ARGV[...] names     lanes, "band:client"; and indexes, ":client"; at most 500
--
-- returns the numbers, in the same order
-- sent twice: changes nothing

local q, names, numbers = named(), ARGV, {}

for i, name in ipairs(names) do
  local is_index = string.byte(name) == 58 -- ":"
  numbers[i] = is_index and redis.call("ZCARD", q.scheduled_by_client .. name) or redis.call("LLEN", q.lane .. name)
end
return numbers
