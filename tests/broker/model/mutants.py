"""Mutants: scripts with one plausible mistake each. Some test must fail for every one of them."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

IS_MINE, IS_ANYBODYS = "if held[i] then", 'held[i] = held[i] or ""\n    if true then'

MUTANTS = (
    # G4: only the holder of a job may settle it, and once
    *(
        Mutant(f"{verb}_without_ownership_check", IS_MINE, IS_ANYBODYS, (verb,))
        for verb in ("claim", "finish", "retry", "bury", "release")
    ),
    Mutant("running_entry_kept_on_ack", 'redis.call("HDEL", q.running, unpack(ids))', NOTHING),
    Mutant("running_entry_kept_on_retry", 'redis.call("HDEL", q.running, id)', NOTHING, ("retry",)),
    Mutant("unknown_worker_may_claim", 'not redis.call("ZRANK", q.workers, worker)', "false", ("claim",)),
    Mutant("unknown_worker_hears_nothing", 'redis.call("ZRANK", tags[i] .. "workers", worker)', "true", ("claim",)),
    Mutant("unknown_worker_loses_jobs", "return claim.found == 0 and begin", "return begin", ("claim",)),
    Mutant("renew_revives_the_unknown", 'if redis.call("ZSCORE", q.workers, name) then', "if true then"),
    Mutant("sign_off_leaves_jobs_behind", 'redis.call("EXISTS", q.running) == 1', "false", ("sign_off",)),
    # G8: enqueued twice is enqueued once
    Mutant("enqueue_without_exists_check", 'redis.call("HEXISTS", q.jobs, id) == 1 or', "", ("enqueue",)),
    Mutant("enqueue_forgets_finished", "q.jobs, id) == 1 or is_finished(q, id)", "q.jobs, id) == 1", ("enqueue",)),
    Mutant(
        "enqueue_forgets_cancelled_ids", 'redis.call("HEXISTS", q.cancelled_in_lane, id) == 1', "false", ("enqueue",)
    ),
    Mutant("enqueue_many_without_exists_check", "known[id] = live[i] or", "known[id] ="),
    Mutant("enqueue_many_forgets_finished", "or finished[i] == 1 or", "or"),
    Mutant("enqueue_many_forgets_cancelled_ids", "or cancelled[i] or", "or"),
    # G9: of those alike one lives
    Mutant("digest_not_held", 'redis.call("SET", q.unique .. digest, id, "PX", string.format("%.0f", ms))', NOTHING),
    Mutant("held_until_done_all_the_same", 'if span == "start" then', "if false then"),
    Mutant("held_until_it_started_once", "if has_failed or find_runner", "if has_failed and find_runner"),
    Mutant("digest_of_another_is_freed", "elseif owner == id then", "elseif owner then"),
    Mutant("digest_is_not_freed", 'redis.call("DEL", q.unique .. digest)', NOTHING),
    Mutant("digests_are_kept", "q.waiting_since, q.digests, q.progress", "q.waiting_since, q.progress"),
    Mutant("forget_overlooks_digests", "if has_more then release_unique(q, ids) end", NOTHING),
    Mutant("buried_with_the_digest", "notify_waiters(q, { id })\n    release_unique(q, { id })", NOTHING, ("bury",)),
    Mutant("crashed_with_the_digest", "release_unique(q, { id })", NOTHING, ("reclaim", "reclaim_child")),
    Mutant("successor_does_not_hold", "then acquire_unique(q, successor, digest, ms) end", "then end"),
    Mutant("successor_takes_it_from_another", "if owner == id or not owner then acquire", "if true then acquire"),
    Mutant("successor_waits_for_ever", "or 0), successor)", "or 0) + ms, successor)"),
    Mutant("successor_that_goes_with_it", "if not gone[successor] and is_successor", "if is_successor"),
    Mutant("successor_that_has_run_runs_again", 'return not redis.call("ZSCORE", q.retrying, id) and', "return"),
    Mutant("every_change_runs", "if successor then", "if false then"),
    Mutant("first_change_counts", 'redis.call("HSET", q.jobs, successor, build_record(job))', NOTHING),
    Mutant("change_before_it_runs", "if not find_runner(q, id) then return false end", NOTHING),
    Mutant("no_limit_for_successors", "job.ready + job.ms, job.id)", "job.ready, job.id)"),
    Mutant("successor_is_forgotten_when_sent_twice", "if first and successor == job.id then", "if false then"),
    Mutant("replaced_while_it_runs", "if find_runner(q, id) then return end", NOTHING),
    Mutant("replaced_job_leaves_its_lane", "job.band, job.client = band, client", "local _ = band"),
    Mutant("replaced_job_stays_in_retrying", 'redis.call("ZREM", q.retrying, id)', NOTHING, ("enqueue_unique",)),
    Mutant("replaced_job_is_in_two_places", "unschedule(q, client, { id })", NOTHING, ("enqueue_unique",)),
    Mutant("replaced_job_keeps_its_time", "schedule(q, job.client, job.ready, id)", NOTHING),
    Mutant("requeued_beside_another", "or (digest and unique_owner(q, digest)) then", "then", ("requeue",)),
    Mutant(
        "requeued_without_its_digest", "if digest then acquire_unique(q, id, digest, ms) end", NOTHING, ("requeue",)
    ),
    Mutant(
        "unique_without_exists_check",
        'if is_known(q, job.id, is_recent(job.id, now)) then return "exists" end',
        NOTHING,
    ),
    # the index: nobody who has work is forgotten
    Mutant("no_ring_entry_on_give_back", "index_lane(q, band, client, now)\n  if is_unrun", "if false"),
    Mutant("no_turn_for_a_client", 'ring, "NX", redis', 'ring, "XX", redis'),
    Mutant("no_turn_beside_an_old_lane", "  if not turn then\n", "  if is_new then\n"),
    Mutant("no_turns_for_many_clients", 'q.ring .. band, "NX", unpack', 'q.ring .. band, "XX", unpack'),
    Mutant(
        "work_signal_not_set",
        'end\n  redis.call("ZADD", q.work_signal, "0", "work")\nend\n',
        "end\nend\n",
        ("enqueue",),
    ),
    Mutant(
        "work_signal_not_set_for_many",
        'end\n  redis.call("ZADD", q.work_signal, "0", "work")\nend',
        "end\nend",
        ("enqueue_many",),
    ),
    Mutant(
        "claim_takes_the_token_along", 'then redis.call("ZADD", q.work_signal, "0", "work") else', "then", ("claim",)
    ),
    Mutant("claim_overlooks_a_queue", "else place = middle + 1 end", "else place = middle + 2 end"),
    Mutant("claim_goes_on_with_lower_queues", "if has_work then high = middle", "if not has_work then high = middle"),
    Mutant("resume_wakes_nobody", 'redis.call("ZADD", q.work_signal, 0, "work")', NOTHING, ("resume",)),
    Mutant("due_signal_only_once", "if due < next_due then", "if next_due == math.huge then"),
    Mutant("due_signal_only_once_for_many", "if earliest < next_due then", "if next_due == math.huge then"),
    Mutant("retry_wakes_no_scheduler", "if due < next_due then", "if false then", ("retry",)),
    Mutant("repair_overlooks_the_ring", "then index_lane(q, band, client, now) end", "then end"),
    Mutant(
        "repair_overlooks_the_band",
        '      redis.call("ZADD", q.bands, rank(band), band)\n    end',
        "    end",
    ),
    # G6: order
    Mutant("band_order_reversed", '"ZREVRANGE", q.bands', '"ZRANGE", q.bands'),
    Mutant("turn_not_advanced", 'redis.call("ZADD", ring, unpack(places))', NOTHING),
    Mutant("the_most_served_come_first", "taken == most and later or going_on", "taken == most and going_on or later"),
    Mutant("released_to_the_end", 'return end\n  redis.call("LPUSH", lane', 'return end\n  redis.call("RPUSH", lane'),
    Mutant("released_after_all_others", "if is_unrun then", "if false then"),
    Mutant("the_guilty_come_first", "record, now, not has_run and", "record, now, true and"),
    Mutant("the_innocent_lose_their_turn", "record, now, not has_run and", "record, now, false and"),
    Mutant("released_beside_the_first", "first[2] - 1, client", "first[2], client"),
    Mutant("released_in_reverse", "for place = #mine, 1, -1 do", "for place = 1, #mine do"),
    Mutant("front_ignored", 'front ~= "" and "LPUSH"', 'false and "LPUSH"'),
    Mutant("front_ignored_among_many", 'client, front == "1", now', "client, false, now"),
    Mutant("promoted_among_the_others", "if picked.is_ahead and", "if false and"),
    Mutant("promoted_below_the_others", "1, -2)) + 0.5", "1, -2)) - 0.5"),
    Mutant("given_back_among_the_others", 'string.gsub(record, "^%-?%d+", "%0+", 1)', "record"),
    Mutant("requeued_ahead", "(%-?%d+)%+?(", "(%-?%d+%+?)("),
    # turns among those that are due
    Mutant(
        "many_due_jobs_go_by_time", "local has_more_than_limit = #due == 2 * limit", "local has_more_than_limit = false"
    ),
    Mutant(
        "many_due_jobs_go_by_turns_alone",
        "has_more_than_limit and math.ceil(limit / BY_TIME)",
        "has_more_than_limit and 0",
    ),
    Mutant("one_client_takes_all_turns", "math.ceil(wanted / math.max(#clients, 1))", "wanted"),
    Mutant("who_was_served_stays_ahead", "math.max(now, next_due)", "next_due"),
    Mutant("who_was_served_has_no_turn", "room - #ids + known", "room - #ids"),
    Mutant("free_places_stay_empty", "pick(due, by_time + 1, #due / 2)", NOTHING),
    Mutant("promoted_twice_in_a_call", "and not has[due[i]] then", "then"),
    Mutant("looked_at_too_far", '"-inf", now, "LIMIT", 0, most', '"-inf", "+inf", "LIMIT", 0, most'),
    Mutant("looked_at_too_late", '"LT", due, client', "due, client"),
    Mutant("looked_at_too_late_for_many", '"LT", unpack(looks)', "unpack(looks)"),
    Mutant("looked_at_for_the_last", "first = math.min(first, theirs[i])", "first = theirs[i]"),
    Mutant("never_looked_at", 'redis.call("ZADD", q.scheduled_by_client, "LT", due, client)', NOTHING),
    Mutant("not_in_the_index", 'redis.call("ZADD", q.scheduled_by_client .. ":" .. client, due, id)', NOTHING),
    Mutant(
        "of_many_none_in_the_index",
        'redis.call("ZADD", q.scheduled_by_client .. ":" .. client, unpack(theirs))',
        NOTHING,
    ),
    Mutant("retried_as_nobodys", "jobs[i + 3], jobs[i + 4]", 'jobs[i + 3], ""', ("retry",)),
    Mutant("replaced_beside_its_client", "then remove_from_index(q, client, { id }) end", "then end"),
    Mutant("changed_beside_its_client", "remove_from_index(q, client, { successor })", NOTHING),
    Mutant("promoted_too_early", '"-inf", now, "WITHSCORES"', '"-inf", now + 1, "WITHSCORES"'),
    # G1: nothing lost, nothing doubled
    Mutant("claim_leaves_the_one", 'if taken == 1 then redis.call("LPOP", lane) end', NOTHING),
    Mutant("claim_trims_one_too_many", "lane, taken, -1", "lane, taken + 1, -1"),
    Mutant("claim_trims_one_too_few", "lane, taken, -1", "lane, taken - 1, -1"),
    Mutant("given_back_twice", 'if redis.call("LPOS"', 'if false and redis.call("LPOS"'),
    Mutant("dead_not_added", 'redis.call("ZADD", q.dead, now, id)', NOTHING, ("reclaim", "reclaim_child")),
    Mutant("buried_nowhere", 'redis.call("ZADD", q.dead, now, id)\n    record', "record", ("bury",)),
    Mutant("reclaim_drops_the_rest", "if left == 0 then delete", "if true then delete"),
    Mutant("reclaim_child_drops_the_rest", "if answer[1] == 0 then delete", "if true then delete"),
    Mutant("reclaim_worker_drops_the_rest", "if answer[2] == 0 then delete", "if true then delete"),
    Mutant("signed_on_without_a_trace", 'redis.call("ZADD", q.signed_on, now, worker)', NOTHING),
    Mutant("repair_overlooks_lost_workers", 'redis.call("ZADD", q.workers, now, holders[i])', NOTHING),
    Mutant("repair_revives_lost_workers", "q.workers, now, holders[i]", "q.workers, now + 60000, holders[i]"),
    Mutant("a_job_deep_in_its_lane_is_overlooked", "NEAR = 200", "NEAR = 1"),
    Mutant("cancel_while_it_runs", 'return { "asked", worker }', NOTHING),
    Mutant("cancel_asks_nobody", 'if how == "terminate" or request == "" then', "if false then"),
    Mutant("cancel_never_terminates", 'if how == "terminate" or request', "if request"),
    Mutant("cancel_takes_terminate_back", 'if how == "terminate" or request == "" then', "if true then"),
    Mutant("cancelled_is_finished", "if string.match(kept,", "if false and string.match(kept,"),
    *(
        Mutant(f"{verb}_ignores_the_wish", "local ended = {}\n  if #ids == 0", "local ended = {}\n  if true", (verb,))
        for verb in ("retry", "bury", "release", "reclaim", "reclaim_child")
    ),
    Mutant("stopped_jobs_are_not_counted", 'count(q.stats, now, "cancelled", 1)\n        ended', "ended"),
    Mutant("over_and_cancelled_all_the_same", "== 1 then -- else it is finished", ">= 0 then -- else it is finished"),
    Mutant("progress_of_others", 'redis.call("HEXISTS", q.running, id) == 0', "false", ("report_progress",)),
    Mutant("cancel_forgets_the_cancelled_id", "if not is_scheduled then", "if false then"),
    Mutant("claim_keeps_the_cancelled_id", 'redis.call("HDEL", q.cancelled_in_lane, unpack(passed))', NOTHING),
    Mutant("claim_leaves_cancelled_ids_in_front", 'redis.call("LTRIM", key, #passed, -1)', NOTHING),
    Mutant(
        "claim_hands_out_up_to_a_cancelled_id",
        "if id and has_skips and is_to_skip(q, id) then return turns end",
        NOTHING,
    ),
    Mutant(
        "a_lane_waits_since_its_cancelled_id",
        'if first then redis.call("ZADD", q.lanes, waiting_since',
        'if false then redis.call("ZADD", q.lanes, waiting_since',
    ),
    Mutant(
        "oldest_is_a_cancelled_id",
        'are_exact = redis.call("EXISTS", q.cancelled_in_lane) == 0',
        "are_exact = true",
        ("queue_overview",),
    ),
    Mutant(
        "an_empty_queue_has_clients", 'math.min(redis.call("ZCARD", q.lanes), queued)', 'redis.call("ZCARD", q.lanes)'
    ),
    Mutant("an_empty_queue_has_an_oldest", "queued > 0 and oldest_startable(q, now)", "oldest_startable(q, now)"),
    Mutant("paused_is_ignored", " or (has(q, q.paused) and open_pauses(q))", "", ("claim",)),
    # a queue is forgotten only while it is empty and unused, and an enqueue brings it back
    Mutant("forget_overlooks_jobs", 'if redis.call("HLEN", q.jobs) > 0', "if false", ("forget",)),
    Mutant("forget_overlooks_a_pause", 'if redis.call("EXISTS", q.paused) == 1', "if false", ("forget",)),
    Mutant("forget_overlooks_workers", 'if redis.call("EXISTS", q.workers, q.signed_on) > 0', "if false", ("forget",)),
    Mutant("forget_overlooks_finished_ids", 'redis.call("EXISTS", q.finished, q.finished_before) > 0', "false"),
    Mutant("forget_overlooks_outcomes", "if not discard and", "if false and", ("forget",)),
    Mutant("forget_comes_too_soon", "now - contact < idle_ms", "false", ("forget",)),
    Mutant("forget_keeps_lanes", 'redis.call("UNLINK", q.lane .. lane)', NOTHING, ("forget",)),
    Mutant("forget_keeps_rings", 'redis.call("UNLINK", q.ring .. band)', NOTHING, ("forget",)),
    Mutant("forgotten_for_ever", 'if field == "enqueued" then', "if false then"),
    Mutant("forget_keeps_counters", 'redis.call("UNLINK", q.stats .. math.floor(now / 60000))', NOTHING, ("forget",)),
    # G3: failures and crashes are counted
    Mutant("crash_not_counted", '"HINCRBY", q.crashes, id, 1', '"HINCRBY", q.crashes, id, 0'),
    Mutant("max_crashes_off_by_one", "crashes > max_crashes", "crashes >= max_crashes"),
    Mutant(
        "crash_is_no_failure",
        'count(q.stats, now, "failed", 1)\n  count(q.stats, now, "crashed"',
        'count(q.stats, now, "crashed"',
    ),
    Mutant("crashes_are_not_counted", 'count(q.stats, now, "crashed", 1)\n', NOTHING),
    Mutant("crash_of_no_task", "if not task then return end", "if true then return end"),
    Mutant("crash_counts_everyone_dead", 'is_dead and "dead" or "retried"', '"dead"'),
    Mutant("failure_not_counted", '"HINCRBY", q.failures, id, failures', '"HGET", q.failures, id'),
    Mutant(
        "unknown_is_told_again_and_again",
        'if failures ~= "0" or not is_same_error(q.errors, id, line) then',
        "if true then",
    ),
    Mutant("a_failure_is_not_told_again", 'if failures ~= "0" or not is_same_error(', "if not is_same_error("),
    Mutant("an_older_failure_of_the_kind_will_do", "class, start_of_newest(lines), true)", "class, 1, true)"),
    Mutant(
        "failures_are_no_attempts", "local attempt = crashes + tonumber(", "local attempt = crashes + 0 * tonumber("
    ),
    Mutant("crashes_are_no_attempts", "(failed + crashed + 1)", "(failed + 1)"),
    Mutant("requeue_keeps_failures", 'redis.call("HDEL", q.failures, id)', NOTHING, ("requeue",)),
    Mutant("requeue_keeps_crashes", 'redis.call("HDEL", q.crashes, id)', NOTHING, ("requeue",)),
    Mutant("run_now_beside_one_like_it", "select(4, read_digest(q, first)) == id", "false", ("run_now",)),
    Mutant("run_now_leaves_it_scheduled", "unschedule(q, client, { id })", NOTHING, ("run_now",)),
    Mutant(
        "run_now_of_what_does_not_wait",
        'if not due then return "elsewhere" end',
        "due = due or 0",
        ("run_now",),
    ),
    Mutant("a_later_death_is_meant_too", "tonumber(died) <= latest", "true", ("requeue_changed",)),
    Mutant("changed_keeps_its_arguments", "if body then", "if false then", ("requeue_changed",)),
    Mutant("released_while_it_lives", "if tonumber(deadline) > now then", "if false then", ("reclaim_worker",)),
    Mutant("suspect_among_others", "if id and q.has_crashes and", "if false and"),
    Mutant("suspects_beside_others", "(claim.suspects == 0 and taken > 0)", "false"),
    Mutant("others_beside_suspects", "return claim.suspects == 0 end", "return true end"),
    Mutant("suspect_for_a_busy_worker", "if given > 0 and claim.suspects == 0 then", "if false then"),
    Mutant(
        "suspect_beside_what_runs", "math.min(most, claim.slots, claim.most)", "math.min(most, math.max(1, claim.most))"
    ),
    Mutant("suspects_without_a_limit", "if claim.suspects >= most or", "if"),
    Mutant("groups_do_not_halve", "slots / 2 ^ crashes", "slots / 2"),
    Mutant("the_last_run_is_beside_others", "crashes >= max_crashes and 1", "false and 1"),
    Mutant("the_last_run_comes_too_soon", "crashes >= max_crashes and 1", "crashes >= max_crashes - 1 and 1"),
    Mutant("each_asks_for_itself", "math.min(most, claim.slots, claim.most)", "math.min(most, claim.slots)"),
    # G5: who is given up, and when
    Mutant("innocent_are_guilty", "return guilty[id]", "return true"),
    Mutant("reclaim_ignores_hold", "if now < hold then", "if false then"),
    Mutant("silence_goes_unnoticed", "if silence > lease_ms / 2 or", "if"),
    Mutant("an_outage_costs_half_a_lease_too", "if silence > lease_ms / 2 or", "if silence >= lease_ms / 2 or"),
    Mutant("leases_go_on_in_an_outage", 'redis.call("ZINCRBY", q.workers, silence, worker)', NOTHING),
    Mutant("each_outage_holds_anew", "hold > last and hold + silence or now", "now"),
    Mutant("reclaim_before_the_deadline", '"-inf", now, "LIMIT", 0, 10', '"-inf", now + 1, "LIMIT", 0, 10'),
    # G10: nothing grows for ever
    Mutant("promote_forgets_retrying", 'redis.call("ZREM", q.retrying, unpack(picked.ids))', NOTHING),
    Mutant("index_keeps_the_promoted", 'redis.call("ZREM", key, unpack(ids))', NOTHING),
    Mutant("index_keeps_the_torn", "table.insert(visit_client(picked, owners[i]), { id })", NOTHING),
    Mutant(
        "index_is_not_looked_through",
        "if not has_more_than_limit and #picked.clients > 0 then",
        "if not has_more_than_limit then",
    ),
    Mutant(
        "index_keeps_clients", 'if #gone > 0 then redis.call("ZREM", q.scheduled_by_client, unpack(gone)) end', NOTHING
    ),
    *(
        Mutant(f"{verb}_keeps_the_index", "  remove_from_index(q, client, ids)\n", NOTHING, (verb,))
        for verb in ("cancel", "run_now", "purge")
    ),
    Mutant(
        "cancel_keeps_the_client",
        '== 0 then redis.call("ZREM", q.scheduled_by_client, client) end',
        "== 0 then end",
        ("cancel",),
    ),
    Mutant("purge_keeps_the_scheduled", "unschedule(q, owner, of_owner)", NOTHING, ("purge",)),
    Mutant("trim_keeps_the_old_dead", '"-inf", now - dead_ms', '"-inf", 0'),
    Mutant("errors_without_end", "KEPT_ERRORS = 5", "KEPT_ERRORS = 6"),
    Mutant(
        "forget_keeps_errors",
        "q.crashes, q.errors, q.waiting_since, q.digests",
        "q.crashes, q.waiting_since, q.digests",
    ),
    Mutant("forget_keeps_the_wish", 'redis.call("HDEL", q.cancel_requests, unpack(ids))', NOTHING),
    Mutant("forget_keeps_progress", "q.digests, q.progress", "q.digests"),
    Mutant("purge_takes_others_lanes", "if not is_of_client then return", "if true then return", ("purge",)),
    Mutant(
        "purge_takes_others_scheduled", "local scheduled = is_of_client and", "local scheduled = false and", ("purge",)
    ),
    Mutant("purge_overlooks_blocked_clients", "if not known[band] then bands", "if false then bands", ("purge",)),
    Mutant("purge_keeps_cancelled_ids", 'redis.call("HDEL", q.cancelled_in_lane, unpack(ids))', NOTHING, ("purge",)),
    Mutant("since_is_kept", "q.has_waiting_since then", "false then"),
    # time
    Mutant("time_runs_backwards", "if clock >= high then", "if true then"),
    Mutant("time_that_was_slow_becomes_fast", "tenths - 9 * clock", "math.floor(tenths / 10)"),
    Mutant("a_schedule_that_began_too_late", "is_sound(last_slot) and is_sound(began)", "is_sound(last_slot)"),
    Mutant("a_slot_that_fired_too_early", "is_sound(last_slot) and is_sound(began)", "is_sound(began)"),
    Mutant("a_shorter_wait_ends_a_longer", '"ZADD", q.waiters, "GT", now', '"ZADD", q.waiters, now'),
    Mutant("expires_before_it_is_ready", "parse_time(expires, ready))", "parse_time(expires, 0))"),
    Mutant("skew_is_believed", "math.abs(now - made) <= SKEW_MS", "true"),
)
