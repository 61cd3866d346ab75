-- latest_failures: the newest dead letter, the failed job with the latest next attempt, and tasks that workers do not
-- know. Reads only.
-- uses: failures
-- keys: dead retrying jobs errors unknown_tasks
-- ARGV[1] bytes       how much to return of the record and of its newest failure
--
-- returns of both jobs {id, time of death or next attempt, start of the record, of its newest failure}, {} for none;
--         unknown_tasks
-- sent twice: changes nothing

local q, bytes = named(), tonumber(ARGV[1])

local function read_last(found)
  if not found[1] then return {} end
  local record, lines = redis.call("HGET", q.jobs, found[1]) or "", redis.call("HGET", q.errors, found[1]) or ""
  local newest = start_of_newest(lines)
  return { found[1], found[2], string.sub(record, 1, bytes), string.sub(lines, newest, newest + bytes - 1) }
end

return {
  read_last(redis.call("ZREVRANGE", q.dead, 0, 0, "WITHSCORES")),
  read_last(redis.call("ZREVRANGE", q.retrying, 0, 0, "WITHSCORES")),
  redis.call("HGETALL", q.unknown_tasks),
}
