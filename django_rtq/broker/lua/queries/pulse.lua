-- pulse: what changes when something happens in a queue, of several queues. Reads only. It is much cheaper than reading them.
-- uses: prelude
-- keys: clock stats scheduled paused running_of
-- ARGV[1] last        minute since 1970 of the last look
-- ARGV[...] workers   names of workers
--
-- returns {now, {counters of that minute, counters since, delayed jobs, how many of the workers run jobs, what is paused},
--         ...}, an entry for each queue
-- sent twice: changes nothing

local last, workers, tags = tonumber(ARGV[1]), { select(2, unpack(ARGV)) }, KEYS
local answer, minute = {}, nil

for place = 1, #tags do
  local q = named(place)
  if place == 1 then
    answer[1] = now_ms(q.clock)
    minute = math.floor(answer[1] / 60000)
  end
  local running = {}
  for _, worker in ipairs(workers) do running[#running + 1] = q.running_of .. worker end
  answer[#answer + 1] = {
    redis.call("HGETALL", q.stats .. string.format("%.0f", last)),
    minute ~= last and redis.call("HGETALL", q.stats .. string.format("%.0f", minute)) or {},
    redis.call("ZCARD", q.scheduled),
    #running > 0 and redis.call("EXISTS", unpack(running)) or 0,
    redis.call("HGETALL", q.paused),
  }
end
return answer
