-- note_version: record that workers run a version of the project, and since when it is the latest.
-- A version is the latest when it comes beside those that run: in a rolling deploy, others run beside it for a while and
-- come again with new processes. It is the latest again when the one after it has gone: after a rollback.
-- uses: prelude
-- ARGV[1] version     of the project
-- ARGV[2] gone_ms     a version that nobody has reported for so long does not run any more
--
-- returns "new" if it is the latest from now on, else "known"
-- sent twice: "known", and nothing changes

local q, version, gone_ms = named(), ARGV[1], tonumber(ARGV[2])
local MOST, SECONDS = 50, 2678400
local now = now_ms(q.clock)
local latest = string.match(redis.call("LINDEX", q.deploys, 0) or "", "^%d+ (.*)$")
local reports, seen, gone, last = redis.call("HGETALL", q.versions), {}, {}, 0

for i = 2, #reports, 2 do last = math.max(last, tonumber(reports[i])) end
-- Nobody has reported any version for long: Redis was away, or all workers were. What ran until then may come back.
local silence = now - last
local shift = (silence > gone_ms or silence < 0) and silence or 0
for i = 1, #reports, 2 do
  local at = reports[i + 1] + shift
  if at < now - gone_ms then gone[#gone + 1] = reports[i] else seen[reports[i]] = at end
end
local is_new = latest ~= version and not (seen[version] and latest and seen[latest])

redis.call("DEL", q.scratch) -- lets a full server be drained
for i = 1, #gone, 1000 do redis.call("HDEL", q.versions, unpack(gone, i, math.min(i + 999, #gone))) end
if shift ~= 0 then
  for name, at in pairs(seen) do redis.call("HSET", q.versions, name, string.format("%.0f", at)) end
end
if seen[version] or redis.call("HLEN", q.versions) < MOST then
  redis.call("HSET", q.versions, version, string.format("%.0f", now))
end
if is_new then
  redis.call("LPUSH", q.deploys, string.format("%.0f ", now) .. version)
  redis.call("LTRIM", q.deploys, 0, MOST - 1)
end
redis.call("EXPIRE", q.versions, SECONDS)
redis.call("EXPIRE", q.deploys, SECONDS)
return is_new and "new" or "known"
