-- turn_heap: keeps the clients that a claim has read in the order of their turns.
-- created when first called

-- Whether a client comes before another: by turn, then by name, as in a zset.
local function is_before(turns, c, other)
  local one, two = turns.clients[c], turns.clients[other]
  local difference = turns.scores[one] - turns.scores[two]
  if difference ~= 0 then return difference < 0 end
  local i = 1
  while string.byte(one, i) == string.byte(two, i) do i = i + 1 end
  return (string.byte(one, i) or -1) < (string.byte(two, i) or -1)
end

-- Put c in place of the first of a binary heap, where it belongs now.
local function sift(turns, heap, c)
  local i = 1
  while heap[2 * i] do
    local child = 2 * i
    if heap[child + 1] and is_before(turns, heap[child + 1], heap[child]) then child = child + 1 end
    if not is_before(turns, heap[child], c) then break end
    heap[i], i = heap[child], child
  end
  if heap[1] then heap[i] = c end
end
