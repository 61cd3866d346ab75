-- end_times: charge clients for the time that jobs used which have ended, and count again after a torn log: see time_turns.
-- created when first called
-- uses: prelude weights used_times

-- Jobs have left the processing lists. `held` are their entries.
local function charge_ended(q, owners, held, are_unrun)
  q.now = q.now or now_ms(q.clock)
  local strides, of = read_strides(q, owners), {}
  local found, mean = read_used(q, owners)
  for _, used in ipairs(found) do of[used.client], used.spent = used, 0 end
  for _, entry in ipairs(held) do
    local claimed_at, noted, client = string.match(entry, "^%d+ (%d+):?(%S*) (.*)$")
    if client then
      local own = of[client].mean
      local all = count_end(of[client], tonumber(claimed_at), are_unrun and 0 or tonumber(noted), q.now, mean)
      if are_unrun or noted == "0" then of[client].mean = own else mean = all end
    end
  end
  for i, used in ipairs(found) do
    local charge = charge_of(used, q.now)
    local is_there = move_turns(q, used, (used.spent + charge - used.charged) * strides[i])
    used.charged = charge
    if used.running > 0 or is_there then
      write_used(q, used)
    else
      redis.call("HDEL", q.job_times, "client:" .. used.client)
    end
  end
  redis.call("HSET", q.job_times, "queue", string.format("%.17g", mean))
end

-- Count the running jobs again. `claims` has the times of the claims of each client in `owners`.
local function recount_used(q, owners, claims)
  q.now = q.now or now_ms(q.clock)
  for _, used in ipairs(read_used(q, owners)) do
    local is_new, charged = used.running == 0, used.charged
    used.running, used.starts = 0, 0
    for _, claimed_at in ipairs(claims[used.client]) do count_starts(used, 1, math.max(claimed_at, used.since)) end
    used.charged = charged
    if is_new then count_anew(used, q.now) end
    write_used(q, used)
  end
  for _, field in ipairs(redis.call("HKEYS", q.job_times)) do
    local client = string.match(field, "^client:(.*)$")
    if client and not claims[client] and redis.call("HEXISTS", q.blocked, client) == 0 then
      redis.call("HDEL", q.job_times, field)
    end
  end
end
