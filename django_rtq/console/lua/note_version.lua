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
local reports, seen, gone = redis.call("HGETALL", q.versions), {}, {}

for i = 1, #reports, 2 do
  if tonumber(reports[i + 1]) < now - gone_ms then gone[#gone + 1] = reports[i] else seen[reports[i]] = true end
end
local is_new = latest ~= version and not (seen[version] and latest and seen[latest])

if #gone > 0 then redis.call("HDEL", q.versions, unpack(gone)) end
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
