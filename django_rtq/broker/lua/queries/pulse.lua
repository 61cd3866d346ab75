-- pulse: what changes when something happens in a queue, of several queues. Reads only. It is much cheaper than reading them.
-- uses: prelude
-- keys: clock stats scheduled paused running_of
-- ARGV[1] last        minute since 1970 of the last look
-- ARGV[...] workers   names of workers
--
-- returns {now, {counters of that minute, counters since, delayed jobs, how many of the workers run jobs, and 1 more while it
--         is paused}, ...}, an entry for each queue
-- sent twice: changes nothing

local last, workers, tags = tonumber(ARGV[1]), { select(2, unpack(ARGV)) }, KEYS
local answer, minute = {}, nil

for place = 1, #tags do
  local q = named(place)
  if place == 1 then
    answer[1] = now_ms(q.clock)
    minute = math.floor(answer[1] / 60000)
  end
  local flags = { q.paused }
  for _, worker in ipairs(workers) do flags[#flags + 1] = q.running_of .. worker end
  answer[#answer + 1] = {
    redis.call("HGETALL", q.stats .. string.format("%.0f", last)),
    minute ~= last and redis.call("HGETALL", q.stats .. string.format("%.0f", minute)) or {},
    redis.call("ZCARD", q.scheduled),
    redis.call("EXISTS", unpack(flags)),
  }
end
return answer
