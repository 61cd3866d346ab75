-- cancel: cancel a job that waits, or ask a running one to stop.
-- uses: prelude schedule lanes runners outcomes known_ids members
-- ARGV[1] most        outcomes kept in this queue
-- ARGV[2] id          the job
-- ARGV[3] keep_ms     how long the outcome is kept
-- ARGV[4] outcome     what is stored then, a JSON object; the name of the task is added
-- ARGV[5] how         to stop it if it runs: "ask" it, "terminate" its process, or "leave" it alone
--
-- returns {"cancelled", ""}, {"asked", the worker that runs it}, or why not: {"missing", "dead", "finished" or "already", ""};
--         "already": it was cancelled before; {"running", the worker that runs it}
-- sent twice: "already", or "asked" again, and nothing changes

local q, most, id = named(), tonumber(ARGV[1]), ARGV[2]
local keep_ms, outcome, how = ARGV[3], ARGV[4], ARGV[5]
local now = now_ms(q.clock)
local record = redis.call("HGET", q.jobs, id)

if not record then
  local kept = redis.call("HGET", q.results, id) or ""
  if string.match(kept, '^%d+ %d+ {"state":"cancelled"') then return { "already", "" } end
  return { has_ended(q, id) and "finished" or "missing", "" }
end
if redis.call("ZSCORE", q.dead, id) then return { "dead", "" } end
local worker = find_runner(q, id)
if worker and how == "leave" then return { "running", worker } end
local task = task_of(record)
if task then outcome = string.sub(outcome, 1, -2) .. ',"task":"' .. task .. '"}' end
if worker then
  local request = redis.call("HGET", q.cancel_requests, id) or ""
  if how == "terminate" or request == "" then
    redis.call("HSET", q.cancel_requests, id, table.concat({ how, keep_ms, most, outcome }, " "))
  end
  return { "asked", worker }
end

local band, client = read_header(record)
local is_scheduled = redis.call("ZSCORE", q.scheduled, id)
if not is_scheduled then redis.call("HSET", q.cancelled_in_lane, id, band .. ":" .. client) end
store_outcomes(q, { id, keep_ms, outcome }, { 1 }, most, now)
note_members(q, { id }, "gone")
delete_jobs(q, { id })
expire_logs(q, { id }, keep_ms)
if is_scheduled then unschedule(q, client, { id }) else trim_cancelled(q, band, client, now) end
count(q.stats, now, "cancelled", 1)
return { "cancelled", "" }
