-- _waiting: people and programs that wait for the end of a job.

local TOKEN_MS = 60000 -- how long the token of a job that is over is kept for who comes late

-- These jobs are over: tell who waits for them.
local function tell_waiting(q, ids)
  if redis.call("EXISTS", q.waiting) == 0 then return end
  for i, is_awaited in ipairs(redis.call("ZMSCORE", q.waiting, unpack(ids))) do
    if is_awaited then
      redis.call("LPUSH", q.over .. ids[i], "over")
      redis.call("PEXPIRE", q.over .. ids[i], TOKEN_MS)
      redis.call("ZREM", q.waiting, ids[i])
    end
  end
end
