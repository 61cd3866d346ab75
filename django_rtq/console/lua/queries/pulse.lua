-- pulse: what changes when something happens in a queue, of several queues. Reads only. It is much cheaper than reading them.
-- uses: prelude runners
-- keys: clock stats scheduled paused workers running_of runners signed_on
-- ARGV[1] last        minute since 1970 of the last look
--
-- returns {now, {counters of that minute, counters since, delayed jobs, running jobs, what is paused},
--         ...}, an entry for each queue
-- sent twice: changes nothing

local last, tags = tonumber(ARGV[1]), KEYS
local answer, minute = {}, nil

for place = 1, #tags do
  if string.sub(tags[place], -2) == "::" then break end -- in a Cluster, a name that never exists
  local q = named(place)
  if place == 1 then
    answer[1] = now_ms(q.clock)
    minute = math.floor(answer[1] / 60000)
  end
  answer[#answer + 1] = {
    redis.call("HGETALL", q.stats .. string.format("%.0f", last)),
    minute ~= last and redis.call("HGETALL", q.stats .. string.format("%.0f", minute)) or {},
    redis.call("ZCARD", q.scheduled),
    count_running(q),
    redis.call("HGETALL", q.paused),
  }
end
return answer
