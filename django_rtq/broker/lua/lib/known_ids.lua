-- known_ids: which ids are known, so that a job that is sent again runs once.

-- Whether an id is known: live, finished lately, or still in a lane. A job that was made just now cannot have been
-- cancelled and forgotten before.
local function is_known(q, id, recent)
  return redis.call("HEXISTS", q.jobs, id) == 1 or redis.call("ZSCORE", q.finished, id)
    or not recent and redis.call("HEXISTS", q.cancelled_in_lane, id) == 1
end
