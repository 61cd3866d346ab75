-- _handing_out: giving jobs to a worker.

-- Write down who runs what before it leaves its lane. An id without a record was lost by a torn log. Answers how many
-- were given.
local function hand_out(q, ids, answer)
  local given, records, counts = answer[3], answer[4], answer[5]
  local held, claimed_at = {}, string.format(" %.0f", answer[2])
  local untried = "1" .. claimed_at
  local failures = q.has_failures and redis.call("HMGET", q.failures, unpack(ids)) or {}
  local crashes = q.has_crashes and redis.call("HMGET", q.crashes, unpack(ids)) or {}
  for i, record in ipairs(redis.call("HMGET", q.jobs, unpack(ids))) do
    if record then
      given[#given + 1], records[#records + 1] = ids[i], record
      held[#held + 1], held[#held + 2] = ids[i], untried
    end
    if record and (failures[i] or crashes[i]) then
      local failed, crashed = tonumber(failures[i] or 0), tonumber(crashes[i] or 0)
      held[#held] = (failed + crashed + 1) .. claimed_at
      counts[#counts + 1], counts[#counts + 2], counts[#counts + 3] = #given - 1, failed, crashed
    end
  end
  if #held > 0 then redis.call("HSET", q.running, unpack(held)) end
  return #held / 2
end
