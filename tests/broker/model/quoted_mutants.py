"""Quoted mutants: mistakes that no rule makes, those that stand for a guarantee (see docs/guarantees.md), and those in
functions that found_by.json does not name, whose mutants nobody has judged."""

from __future__ import annotations

from tests.broker.model.mutant import Mutant

QUOTED_MUTANTS = (
    # G1: no job is lost, or in two places
    Mutant("claim_leaves_the_one", "lib/turns", 'if taken == 1 then redis.call("LPOP", lane) end', ""),
    Mutant("claim_trims_one_too_many", "lib/turns", "lane, taken, -1", "lane, taken + 1, -1"),
    Mutant("given_back_twice", "lib/lanes", 'if redis.call("LPOS"', 'if false and redis.call("LPOS"'),
    Mutant("dead_not_added", "lib/reclaim", 'redis.call("ZADD", q.dead, now, id)', ""),
    Mutant("buried_nowhere", "bury", 'redis.call("ZADD", q.dead, now, id)\n    record', "record"),
    Mutant("running_entry_kept_on_ack", "lib/settle", 'redis.call("HDEL", q.running, unpack(ids))', ""),
    Mutant("running_entry_kept_on_retry", "retry", 'redis.call("HDEL", q.running, id)', ""),
    Mutant("a_job_deep_in_its_lane_is_overlooked", "lib/lanes", "NEAR = 200", "NEAR = 1"),
    Mutant("what_runs_is_moved", "move", 'if find_runner(q, id) then return "running" end', ""),
    Mutant("restored_twice", "lib/restore", 'redis.call("HEXISTS", q.jobs, id) == 1 or is_finished', "is_finished"),
    # G3: failures and crashes are counted
    Mutant("crash_not_counted", "lib/reclaim", '"HINCRBY", q.crashes, id, 1', '"HINCRBY", q.crashes, id, 0'),
    Mutant("max_crashes_off_by_one", "lib/reclaim", "crashes > max_crashes", "crashes >= max_crashes"),
    Mutant("others_beside_suspects", "lib/claim", "return claim.suspects == 0 end", "return true end"),
    Mutant("errors_without_end", "lib/failures", "KEPT_ERRORS = 5", "KEPT_ERRORS = 6"),
    # G4: only the holder of a job may settle it, and once
    Mutant(
        "finish_without_ownership_check", "lib/settle", "if held[i] then", 'held[i] = held[i] or ""\n    if true then'
    ),
    Mutant("unknown_worker_may_claim", "claim", 'not redis.call("ZRANK", q.workers, worker)', "false"),
    Mutant("renew_revives_the_unknown", "renew", 'if redis.call("ZSCORE", q.workers, name) then', "if true then"),
    Mutant("sign_off_leaves_jobs_behind", "sign_off", 'redis.call("EXISTS", q.running) == 1', "false"),
    Mutant("cancel_while_it_runs", "cancel", 'return { "asked", worker }', ""),
    # G5: who is given up, and when
    Mutant("innocent_are_guilty", "reclaim_child", "return guilty[id]", "return true"),
    Mutant("reclaim_ignores_hold", "reclaim", "if now < hold then", "if false then"),
    Mutant("reclaim_before_the_deadline", "reclaim", '"-inf", now, "LIMIT", 0, 10', '"-inf", now + 1, "LIMIT", 0, 10'),
    # G6: order and turns
    Mutant("band_order_reversed", "claim", '"ZREVRANGE", q.bands', '"ZRANGE", q.bands'),
    Mutant("turn_not_advanced", "lib/turns", 'redis.call("ZADD", ring, unpack(places))', ""),
    Mutant("front_ignored", "lib/enqueue", 'front ~= "" and "LPUSH"', 'false and "LPUSH"'),
    Mutant("released_in_reverse", "release", "for place = #mine, 1, -1 do", "for place = 1, #mine do"),
    Mutant("requeued_ahead", "lib/requeue", "(%-?%d+)%+?(", "(%-?%d+%+?)("),
    Mutant("moved_ahead", "lib/moving", '"^(%-?%d+)%+?( %d+)( %d+ %d+ )"', '"^(%-?%d+%+?)( %d+)( %d+ %d+ )"'),
    Mutant("promoted_too_early", "promote", '"-inf", now, "WITHSCORES"', '"-inf", now + 1, "WITHSCORES"'),
    Mutant("looked_at_too_far", "lib/promote", '"-inf", now, "LIMIT", 0, most', '"-inf", "+inf", "LIMIT", 0, most'),
    # G8: enqueued twice is enqueued once
    Mutant("enqueue_without_exists_check", "lib/known_ids", 'redis.call("HEXISTS", q.jobs, id) == 1 or', ""),
    Mutant("enqueue_many_without_exists_check", "lib/known_ids", "known[id] = live[i] or", "known[id] ="),
    Mutant("an_id_is_forgotten_at_once", "lib/outcomes", 'redis.call("SADD", q.finished, unpack(ids))', ""),
    # G9: of those alike one lives
    Mutant(
        "digest_not_held",
        "lib/unique",
        'redis.call("SET", q.unique .. digest, id, "PX", string.format("%.0f", ms))',
        "",
    ),
    Mutant("requeued_beside_another", "lib/requeue", "or (digest and unique_owner(q, digest)) then", "then"),
    # G10: nothing grows for ever
    Mutant("promote_forgets_retrying", "promote", 'redis.call("ZREM", q.retrying, unpack(picked.ids))', ""),
    Mutant("results_without_end", "lib/outcomes", "if over > 0 then drop", "if false then drop"),
    Mutant("recent_outcomes_go_before_old_ones", "lib/retention", "local old = #ids", "local old = 0"),
    Mutant(
        "trim_keeps_old_outcomes_too_long",
        "lib/retention",
        'q.result_expiry, "-inf", now,',
        'q.result_expiry, "-inf", now - 1,',
    ),
    Mutant("one_line_too_many", "append_log", '"LRANGE", log, -MAX_LINES, -1', '"LRANGE", log, -MAX_LINES - 1, -1'),
    # nobody who has work is forgotten
    Mutant("no_ring_entry_on_give_back", "lib/lanes", "index_lane(q, band, client, now)\n  if is_unrun", "if false"),
    Mutant(
        "work_signal_not_set", "lib/lanes", 'end\n  redis.call("ZADD", q.work_signal, "0", "work")\nend\n', "end\nend\n"
    ),
    Mutant("due_signal_only_once", "lib/schedule", "if due < next_due then", "if next_due == math.huge then"),
    Mutant("resume_wakes_nobody", "resume", 'redis.call("ZADD", q.work_signal, 0, "work")', ""),
    Mutant(
        "oldest_is_a_cancelled_id",
        "lib/startable",
        'are_exact = redis.call("EXISTS", q.cancelled_in_lane) == 0',
        "are_exact = true",
    ),
    # limits: which of several texts holds
    Mutant("one_more_than_the_limit", "lib/limits", "caps[text] - (running or 0)", "caps[text] - (running or 0) + 1"),
    Mutant("queue_over_its_limit", "claim", "math.max(0, claim.wanted - room)", "0"),
    Mutant(
        "one_more_of_a_queue_waits",
        "lib/waiting",
        "of_queue.waiting >= of_queue.most",
        "of_queue.waiting > of_queue.most",
    ),
    Mutant("jobs_of_the_queue_not_counted", "lib/running_counts", '{ "queue" }, { total }', '{ "queue" }, { 0 }'),
    Mutant(
        "a_function_has_no_say",
        "lib/limit_sources",
        '"limits_of:" .. field, "settings:" .. field)',
        '"limits_of", "settings:" .. field)',
    ),
    Mutant(
        "the_settings_win",
        "lib/limit_sources",
        '"limits_of:" .. field, "settings:" .. field)',
        '"settings:" .. field, "limits_of:" .. field)',
    ),
    Mutant(
        "the_function_wins",
        "lib/limit_sources",
        '"run:" .. field, "limits_of:" .. field,',
        '"limits_of:" .. field, "run:" .. field,',
    ),
    Mutant("settings_win", "lib/limit_sources", "for i = 1, 3 do texts", "for i = 3, 1, -1 do texts"),
    Mutant(
        "other_values_are_lost",
        "lib/limit_sources",
        'text, paused = table.concat(texts, " ")',
        'text, paused = texts[1] or ""',
    ),
    Mutant("settings_are_lost", "lib/limit_sources", "for i = 1, 3 do texts", "for i = 1, 2 do texts"),
    Mutant("all_must_fit_beside_what_is_queued", "lib/unique_preview", "{ has_drops = drops }", "{}"),
    Mutant(
        "a_pause_may_limit_waiting", "lib/limit_sources", "if paused then return set_pause", "if paused then set_pause"
    ),
    Mutant(
        "weights_are_noted_twice",
        "lib/limit_sources",
        "local before, after = count_weight(",
        "local before, after = 0 * count_weight(",
    ),
    # times and paused tasks
    Mutant(
        "times_are_noted_for_others",
        "note_times",
        'redis.call("HMGET", q.running, unpack(ids))',
        'redis.call("HMGET", q.running, ids[1])',
    ),
    Mutant("the_last_word_on_times_wins", "lib/limits", '" fair_by=(%l+)") == "seconds"', '" fair_by=seconds") ~= nil'),
    Mutant("held_since_now", "lib/held_jobs", "waiting_since(q, found[i], q.now))", "q.now)"),
    Mutant(
        "the_oldest_come_back_first",
        "lib/held_jobs",
        '"ZREVRANGEBYSCORE", q.scheduled, top, bottom',
        '"ZRANGEBYSCORE", q.scheduled, bottom, top',
    ),
    Mutant("the_held_are_due_in_a_thousand_years", "promote", '"(" .. lowest_held()', '"+inf"'),
)

# In functions that are not judged, by their files: name, text, what it becomes.
IN_OTHER_FUNCTIONS = {
    "append_log": (
        ("lines_are_added_again", "tonumber(last_number) >= tonumber(number)", "last_number == number"),
        ("parts_are_compared_as_texts", "tonumber(last_number) >= tonumber(number)", "last_number >= number"),
        ("lines_of_another_process_are_known", "last_token == token and", "last_token and"),
        ("noted_without_lines", 'if not is_kept or over_ms == ""', 'if over_ms == ""'),
        ("noted_again", ' or over_ms == "" or is_known then', ' or over_ms == "" then'),
        ("lines_of_too_many", 'redis.call("RPUSH", q.logged, id) - most', 'redis.call("RPUSH", q.logged, id) * 0'),
    ),
    "bury": (("buried_with_the_digest", "notify_waiters(q, { id })\n    release_unique(q, { id })", ""),),
    "cancel": (
        ("cancel_asks_nobody", 'if how == "terminate" or request == "" then', "if false then"),
        ("cancel_never_terminates", 'if how == "terminate" or request', "if request"),
        ("cancelled_is_finished", "if string.match(kept,", "if false and string.match(kept,"),
        ("cancel_forgets_the_cancelled_id", "if not is_scheduled then", "if false then"),
        ("who_was_cancelled_is_taken_for_finished", '^%d+ %d+ {"state"', '^%d+ {"state"'),
    ),
    "cancel_client_jobs": (
        ("cancelled_jobs_lose_their_lines", "expire_logs(q, cancelled, keep_ms)", "expire_logs(q, cancelled, 0)"),
        ("a_later_job_is_cancelled", "<= until_ms then", "<= 1e15 then"),
        ("an_id_without_a_time_is_later", "16) or 0) <=", "16) or 1e15) <="),
        ("those_behind_are_not_noted", "if lane then", "if false then"),
        ("cancelled_is_purged", '"cancelled", #cancelled', '"purged", #cancelled'),
    ),
    "claim": (
        ("unknown_worker_loses_jobs", "return claim.found == 0 and begin", "return begin"),
        ("claim_takes_the_token_along", 'then redis.call("ZADD", q.work_signal, "0", "work") else', "then"),
        ("claim_overlooks_a_queue", "else place = middle + 1 end", "else place = middle + 2 end"),
        ("claim_goes_on_with_lower_queues", "if has_work then high = middle", "if not has_work then high = middle"),
        ("paused_is_ignored", " or (has(q, q.paused) and open_pauses(q))", ""),
        ("queue_without_limit", "room <= 0 or (has(q, q.paused)", "(has(q, q.paused)"),
    ),
    "discard": (("all_that_are_dead_are_deleted", 'undo == "" and dead or {', "dead or {"),),
    "enqueue_unique": (
        ("duplicates_are_refused", "rooms and is_new(q, job, first, successor) and find", "rooms and find"),
        ("all_need_their_places_twice", "  rooms = false", "  rooms = rooms"),
        ("all_find_no_places", "drops and clients or {}", "{}"),
    ),
    "forget": (
        ("forget_overlooks_finished_ids", 'redis.call("EXISTS", q.finished, q.finished_before) > 0', "false"),
        ("forget_overlooks_outcomes", "if not discard and", "if false and"),
        ("forget_comes_too_soon", "now - contact < idle_ms", "false"),
    ),
    "keep_limits": (
        ("new_answers_wake_nobody", 'if #changed > 0 and redis.call("EXISTS", q.bands) == 1 then', "if false then"),
        ("nobody_goes_on_when_a_function_says_so", "for _, client in ipairs(changed) do unblock(q, client) end\n", ""),
        (
            "a_met_client_is_not_noted",
            '"ZADD", q.asked_limits, now, entries[i])',
            '"ZADD", q.asked_limits, "XX", now, entries[i])',
        ),
        ("a_client_that_waits_is_forgotten", " or client_waiting(q, client) > 0", ""),
        (
            "a_client_that_runs_jobs_is_forgotten",
            'redis.call("HEXISTS", q.running_counts, "client:" .. client) == 1 or',
            "",
        ),
        ("forgotten_too_early", "now - idle_ms, ", "now - idle_ms + 1, "),
        ("fewer_are_forgotten", "FORGOTTEN + #entries / 2", "FORGOTTEN"),
    ),
    "lib/assign": (
        ("crashes_are_no_attempts", "(failed + crashed + 1)", "(failed + 1)"),
        ("suspect_for_a_busy_worker", "if given > 0 and claim.suspects == 0 then", "if false then"),
        ("since_is_kept", "q.has_waiting_since then", "false then"),
        ("clients_wait_without_a_time", "next(turns.blocked) then wait_for_rates", "false then wait_for_rates"),
        ("debts_without_waiting_jobs", "q.has_more = has_waiting(q) and q.has_more", ""),
    ),
    "lib/blocking": (
        ("claims_of_no_room_let_clients_go_on", "if room > 0 then resume_due(q, 10) end", "resume_due(q, 10)"),
    ),
    "lib/bulk_enqueue": (
        ("due_signal_only_once_for_many", "if earliest < next_due then", "if next_due == math.huge then"),
        ("front_ignored_among_many", 'client, front == "1", now', "client, false, now"),
        ("looked_at_too_late_for_many", '"LT", unpack(looks)', "unpack(looks)"),
        ("looked_at_for_the_last", "first = math.min(first, theirs[i])", "first = theirs[i]"),
        (
            "many_jobs_ignore_limits",
            'local rooms = not is_accepted and redis.call("EXISTS", q.waiting_limits) == 1 and {}',
            "local rooms = false",
        ),
        ("a_known_job_is_refused", "rooms and not known[id] and take_place", "rooms and take_place"),
        ("a_refused_job_is_stored", "if not known[id] and not full then", "if not known[id] then"),
    ),
    "lib/claim": (
        ("suspects_beside_others", "(claim.suspects == 0 and taken > 0)", "false"),
        (
            "suspect_beside_what_runs",
            "math.min(most, claim.slots, claim.most)",
            "math.min(most, math.max(1, claim.most))",
        ),
        ("suspects_without_a_limit", "if claim.suspects >= most or", "if"),
        ("groups_do_not_halve", "slots / 2 ^ crashes", "slots / 2"),
        ("the_last_run_is_beside_others", "crashes >= max_crashes and 1", "false and 1"),
        ("the_last_run_comes_too_soon", "crashes >= max_crashes and 1", "crashes >= max_crashes - 1 and 1"),
        ("each_asks_for_itself", "math.min(most, claim.slots, claim.most)", "math.min(most, claim.slots)"),
    ),
    "lib/dropping": (
        ("the_wrong_end_is_removed", 'is_last and "RPOP" or "LPOP"', '"LPOP"'),
        ("a_place_of_the_client_is_lost", "of_client.waiting = of_client.waiting - 1", "of_client = nil"),
        (
            "a_cancelled_id_makes_room_in_the_queue",
            "  local record = id and redis",
            "  rooms.queue.waiting = rooms.queue.waiting - 1\n  local record = id and redis",
        ),
        ("a_lane_stays_as_old", "if first and not is_last then", "if false then"),
        ("a_lane_gets_younger", "if first and not is_last then", "if first then"),
        ("a_call_drops_one_less", "left = MORE + jobs,", "left = MORE + jobs - 1,"),
    ),
    "lib/end_times": (
        ("unrun_jobs_are_charged", "are_unrun and 0 or tonumber(noted)", "tonumber(noted)"),
        ("what_was_charged_stays", "used.spent + charge - used.charged", "used.spent + charge"),
        ("ends_without_weight", "charge - used.charged) * strides[i])\n    used", "charge - used.charged))\n    used"),
    ),
    "lib/enqueue": (
        ("expires_before_it_is_ready", "parse_time(expires, ready))", "parse_time(expires, 0))"),
        ("skew_is_believed", "math.abs(now - made) <= SKEW_MS", "true"),
    ),
    "lib/failures": (
        ("an_older_failure_of_the_kind_will_do", "class, start_of_newest(lines), true)", "class, 1, true)"),
    ),
    "lib/limits": (
        ("one_of_several_is_full", "if room > 0 or q.rates", "if room <= 0 then return true end\n    if q.rates"),
        ("rates_wake_nobody", ' or q.rates["client:" .. clients[i]] then', " then"),
        ("a_rate_of_the_queue_wakes_nobody", "<= 0 and not q.rates.queue then return true", "<= 0 then return true"),
        ("paused_clients_start", "are_paused[i] and 0 or", ""),
        ("clients_have_no_limit_of_their_own", "values_of(own, of.clients)", "default"),
        ("clients_have_no_default", "values_of(own, of.clients) or default", "values_of(own) or ''"),
        ("who_waits_for_a_place_waits_for_its_rate", "if rate and rooms[i] > 0 then", "if rate then"),
        ("queue_without_rate", "return math.min(room, rate.room),", "return room,"),
    ),
    "lib/held_jobs": (
        ("jobs_behind_others_are_held", "      if not number then break end\n", "      number = number or 100\n"),
    ),
    "lib/known_ids": (
        ("enqueue_forgets_finished", "q.jobs, id) == 1 or is_finished(q, id)", "q.jobs, id) == 1"),
        ("enqueue_forgets_cancelled_ids", 'redis.call("HEXISTS", q.cancelled_in_lane, id) == 1', "false"),
        ("ids_of_the_last_period_are_unknown", ' or redis.call("SISMEMBER", q.finished_before, id) == 1', ""),
        ("ids_of_this_period_are_unknown", 'redis.call("SISMEMBER", q.finished, id) == 1 or ', ""),
        ("a_period_ends_too_early", "age < PERIOD_MS", "age < PERIOD_MS - 1"),
        ("a_clock_that_was_ahead_keeps_ids", "age >= 0 and ", ""),
        ("who_finished_long_ago_is_unknown", 'redis.call("HEXISTS", q.results, id) == 1 or ', ""),
    ),
    "lib/lanes": (
        ("released_beside_the_first", "first[2] - 1, client", "first[2], client"),
        ("promoted_below_the_others", "1, -2)) + 0.5", "1, -2)) - 0.5"),
        ("blocked_get_turns_back", ' and redis.call("ZSCORE", q.ring .. band, client) ~= "inf"', ""),
    ),
    "lib/limit_sources": (
        ("first_limit_counts_nothing", "elseif not (is_counted and changes.had_limits) then", "elseif false then"),
        (
            "a_first_limit_of_a_function_counts_nothing",
            "elseif not (is_counted and changes.had_limits) then",
            "elseif not is_counted then",
        ),
        ("counts_outlast_limits", 'redis.call("DEL", q.running_counts, q.rate_times', 'redis.call("DEL", q.rate_times'),
        ("rates_outlast_limits", ", q.rate_times, q.next_starts)\n  elseif", ")\n  elseif"),
    ),
    "lib/moving": (
        ("the_dead_expire_there", 'string.format(" %.0f 0 ", now) or "%3"', '"%3" or "%3"'),
        ("moved_and_not_retrying", "if job.due and job.is_retrying", "if false"),
        ("the_dead_keep_their_counts", "local value = (i < 3 or not job.is_dead) and", "local value ="),
        ("counts_stay_behind", "(i < 3 or not job.is_dead)", "i < 3"),
        ("errors_stay_behind", "(i < 3 or not job.is_dead)", "i > 1"),
        (
            "moved_without_its_digest",
            "if job.is_owner or (job.digest and job.is_dead) then acquire",
            "if false then acquire",
        ),
        (
            "the_dead_enter_without_their_digest",
            "if job.is_owner or (job.digest and job.is_dead) then acquire",
            "if job.is_owner then acquire",
        ),
        ("moved_without_its_note", "if job.note then", "if false then"),
        ("moved_from_the_middle", "if lane and not is_first then", "if false then"),
        ("moved_and_scheduled", "if job.is_scheduled then unschedule", "if false then unschedule"),
        ("moved_and_dead", 'if job.is_dead then redis.call("ZREM"', 'if false then redis.call("ZREM"'),
    ),
    "lib/outcomes": (
        ("outcomes_tell_no_time", "times .. outcome", "outcome"),
        ("each_is_kept_as_long_as_the_first", "if list[i + 1] ~= keep_ms then", "if not keep_ms then"),
        (
            "who_has_an_outcome_has_none",
            'redis.call("RPUSH", q.no_outcome, unpack(without))',
            'redis.call("RPUSH", q.no_outcome, unpack(ids))',
        ),
    ),
    "lib/promote": (
        ("promoted_among_the_others", "if picked.is_ahead and", "if false and"),
        ("given_back_among_the_others", 'string.gsub(record, "^%-?%d+", "%0+", 1)', "record"),
        ("one_client_takes_all_turns", "math.ceil(wanted / math.max(#clients, 1))", "wanted"),
        ("who_was_served_has_no_turn", "room - #ids + known", "room - #ids"),
    ),
    "lib/rates": (
        ("rates_are_ignored", "if not starts then return end", "do return end"),
        ("burst_is_ignored", 'tonumber(string.match(values, " burst=(%S+)")) or', ""),
        ("default_burst_is_one", "math.max(1, math.floor(100 * starts / period))", "1"),
        (
            "default_burst_may_be_none",
            "math.max(1, math.floor(100 * starts / period))",
            "math.floor(100 * starts / period)",
        ),
        ("a_lower_rate_holds_on", "math.min(arrival, latest)", "arrival"),
        (
            "a_lower_rate_is_cut_again_and_again",
            'if rate.is_cut then redis.call("ZADD"',
            'if false then redis.call("ZADD"',
        ),
        ("one_more_start_than_the_rate_allows", "/ rate.interval + 1e-6)", "/ rate.interval + 1)"),
        ("part_of_a_start_is_one", "/ rate.interval + 1e-6)", "/ rate.interval + 0.2)"),
        ("rounded_starts_are_missing", "/ rate.interval + 1e-6)", "/ rate.interval - 1e-6)"),
        ("next_start_after_the_burst", "(rate.burst - 1) * rate.interval", "0"),
        ("fast_rates_wake_for_each_start", "if rate.interval < EARLIEST_MS then", "if false then"),
        (
            "fast_rates_wait_beyond_their_burst",
            "math.min(q.now + EARLIEST_MS, math.ceil(rate.arrival))",
            "q.now + EARLIEST_MS",
        ),
        ("next_starts_wake_no_scheduler", "if moment < tonumber(first or math.huge) then", "if false then"),
    ),
    "lib/reclaim": (
        ("the_guilty_come_first", "record, now, not has_run and", "record, now, true and"),
        ("the_innocent_lose_their_turn", "record, now, not has_run and", "record, now, false and"),
        ("crash_counts_everyone_dead", 'is_dead and "dead" or "retried"', '"dead"'),
        ("failures_are_no_attempts", "local attempt = crashes + tonumber(", "local attempt = crashes + 0 * tonumber("),
        ("reclaimed_jobs_get_the_first_turn", "not has_run and not is_timed", "not has_run"),
        ("reclaimed_jobs_have_run", "if is_timed and not has_run then", "if false then"),
    ),
    "lib/recount": (
        ("entries_without_owner_stay", 'held[i + 1] .. " " .. client)', "held[i + 1])"),
        ("times_are_not_counted_again", "then recount_used(q, owners, claims) end", "then return end"),
    ),
    "lib/requeue": (("changed_keeps_its_arguments", "if body then", "if false then"),),
    "lib/restore": (
        ("restored_in_another_place", 'redis.call("ZADD", q.dead, at, id)', 'redis.call("ZADD", q.dead, now, id)'),
        ("the_finished_are_restored", "== 1 or is_finished(q, id) then return id", "== 1 then return id"),
        ("the_held_stay_in_scheduled", "due >= tonumber(lowest_held())", "false"),
        ("the_held_waited_since_now", "then parts[7] = string", "then parts[6] = string"),
        ("restored_behind_others", "push_front(q, id, record, now)", "push_back(q, id, record, now)"),
        ("restored_without_retrying", 'if state == "retrying" then', "if false then"),
    ),
    "lib/retention": (
        ("all_that_is_too_much_goes_at_once", "math.min(number, AT_ONCE)", "math.min(number, 5000)"),
        ("recent_outcomes_go_with_old_ones", "number - old - 1)", "number - 1)"),
        ("the_latest_outcomes_go_first", "q.recent_results, 0, number", "q.recent_results, -1, number"),
        ("trim_moves_recent_outcomes", "now - finished_at < RECENT_MS", "now - finished_at < RECENT_MS - 1"),
        ("trim_waits_for_a_clock_that_was_ahead", "finished_at <= now and ", ""),
        ("trim_looks_at_all_outcomes", "0, TEXTS_AT_ONCE - 1", "0, -1"),
        ("trim_keeps_results", 'redis.call("HDEL", q.results, unpack(gone))', "0"),
        ("trim_tells_nothing_of_what_is_left", " or n == TEXTS_AT_ONCE", ""),
    ),
    "lib/running_counts": (
        ("jobs_of_clients_not_counted", '"client:" .. client, owners[client]\n', '"client:" .. client, 0\n'),
        ("ends_not_counted", "sign * numbers[i]", "math.max(0, sign) * numbers[i]"),
        (
            "ends_wake_nobody",
            'if redis.call("EXISTS", q.bands) == 1 then redis.call("ZADD", q.work_signal, "0", "work") end\nend',
            "\nend",
        ),
        ("ends_are_not_charged", "if there == 2 then charge_ended(", "if false then charge_ended("),
    ),
    "lib/search_steps": (
        ("who_was_claimed_with_the_last_is_left_out", "claimed == last and running[i] > at[2]", "false"),
        ("who_was_claimed_with_the_last_is_found_again", "claimed == last and running[i] > at[2]", "claimed == last"),
        ("running_jobs_end_with_the_first_step", 'return #held > most and "more" or "all"', 'return "all"'),
        ("retrying_jobs_are_scheduled_ones", "known[i].is_seen or not is_meant", "known[i].is_seen"),
        ("all_delayed_jobs_are_searched_for_a_client", 'state ~= "dead" and of_client ~= ""', "false"),
        ("no_retrying_job_is_known", 'state == "retrying" and q.retrying or q.scheduled', "q.scheduled"),
        ("the_oldest_dead_come_first", 'is_of_client = state == "dead", state', "is_of_client = false, state"),
        (
            "who_died_with_the_last_is_left_out",
            "is_equal and ((is_falling and id >= at[2])",
            "is_equal and ((is_falling)",
        ),
        ("who_is_due_with_the_last_is_left_out", "(not is_falling and id <= at[2]))", "(not is_falling))"),
        ("lists_end_with_the_first_step", 'return #places == most and "more" or "all", places', 'return "all", places'),
        ("lists_never_end_at_one_client", "#at == 3 or #at == 6)", "#at == 3)"),
    ),
    "lib/schedule": (
        ("retry_wakes_no_scheduler", "if due < next_due then", "if false then"),
        ("looked_at_too_late", '"LT", due, client', "due, client"),
    ),
    "lib/settle": (
        ("claim_without_ownership_check", "if held[i] then", 'held[i] = held[i] or ""\n    if true then'),
        ("retry_without_ownership_check", "if held[i] then", 'held[i] = held[i] or ""\n    if true then'),
        ("bury_without_ownership_check", "if held[i] then", 'held[i] = held[i] or ""\n    if true then'),
        ("release_without_ownership_check", "if held[i] then", 'held[i] = held[i] or ""\n    if true then'),
        ("retry_ignores_the_wish", "local ended = {}\n  if #ids == 0", "local ended = {}\n  if true"),
        ("bury_ignores_the_wish", "local ended = {}\n  if #ids == 0", "local ended = {}\n  if true"),
        ("release_ignores_the_wish", "local ended = {}\n  if #ids == 0", "local ended = {}\n  if true"),
        ("reclaim_ignores_the_wish", "local ended = {}\n  if #ids == 0", "local ended = {}\n  if true"),
        ("reclaim_child_ignores_the_wish", "local ended = {}\n  if #ids == 0", "local ended = {}\n  if true"),
        ("over_and_cancelled_all_the_same", "== 1 then -- else it is finished", ">= 0 then -- else it is finished"),
    ),
    "lib/time_turns": (
        ("one_look_is_enough", "if not is_late then return end", "return"),
        (
            "late_charges_without_weight",
            "(charge - used.charged) * strides[i])\n        used",
            "charge - used.charged)\n        used",
        ),
        ("late_charges_are_forgotten", "used.charged, is_late = charge, true", "is_late = true"),
    ),
    "lib/turns": (
        ("the_most_served_come_first", "taken == most and later or going_on", "taken == most and going_on or later"),
        ("suspect_among_others", "if id and q.has_crashes and", "if false and"),
        ("blocked_go_to_the_end", "turns.blocked and turns.blocked[c] and {} or", ""),
        ("band_of_the_blocked_stays", "#first_clients(q, band, 1) == 0", 'redis.call("EXISTS", ring) == 0'),
        ("turns_are_lost", "turns.scores and turns.scores[client] or last + i", "last + i"),
        ("who_has_nothing_left_owes_nothing", "q.has_times and taken > 0 and going_on or gone", "gone"),
    ),
    "lib/undo": (
        (
            "empty_lists_are_remembered",
            'if #gone > 0 then redis.call("HDEL", q.undos',
            'if false then redis.call("HDEL", q.undos',
        ),
    ),
    "lib/unique": (
        ("digest_of_another_is_freed", "elseif owner == id then", "elseif owner then"),
        ("successor_waits_for_ever", "or 0), successor)", "or 0) + ms, successor)"),
        ("successor_that_goes_with_it", "if not gone[successor] and is_successor", "if is_successor"),
    ),
    "lib/unique_enqueue": (
        ("no_limit_for_successors", "job.ready + job.ms, job.id)", "job.ready, job.id)"),
        ("replaced_job_leaves_its_lane", "job.band, job.client = band, client", "local _ = band"),
        (
            "a_second_run_needs_no_place",
            'not first or job.conflict == "rerun" and not successor and find_runner(q, first)',
            "not first",
        ),
        ("each_second_run_needs_a_place", "and not successor and find_runner(q, first)", "and find_runner(q, first)"),
        ("a_second_before_the_first_needs_a_place", "and not successor and find_runner(q, first)", "and not successor"),
    ),
    "lib/unique_preview": (
        ("preview_overlooks_ids", 'seen[job.id] and "exists" or is_known', "is_known"),
        ("preview_knows_refused_jobs", "if not (answer or full) then", "if not answer then"),
        ("preview_overlooks_digests", "(seen[job.digest] or not is_new", "(not is_new"),
        ("preview_overlooks_owners", "or not is_new(q, job, first, successor))", ")"),
        ("preview_overlooks_known_ids", 'is_known(q, job.id, is_recent(job.id, now)) and "exists"', "false"),
    ),
    "lib/waiting": (
        ("the_dead_wait", ' - redis.call("ZCARD", q.dead) - running', " - running"),
        ("what_runs_waits", ' - redis.call("ZCARD", q.dead) - running', ' - redis.call("ZCARD", q.dead)'),
        (
            "delayed_do_not_wait",
            'redis.call("ZCARD", q.scheduled_by_client .. ":" .. client) + count_lanes_of',
            "count_lanes_of",
        ),
        ("cancelled_jobs_fill_a_client", "if seems_full and not rooms.has_drops then", "if false then"),
        (
            "jobs_of_a_call_have_one_place",
            "of_client.waiting + 1, of_queue.waiting + 1",
            "of_client.waiting, of_queue.waiting + 1",
        ),
        (
            "clients_of_a_call_have_one_place",
            "of_client.waiting + 1, of_queue.waiting + 1",
            "of_client.waiting + 1, of_queue.waiting",
        ),
    ),
    "lib/weighted_turns": (
        ("turns_do_not_move_on", "+ (q.has_times and 1 or n) * steps[c]", ""),
        ("turns_of_the_same_stride", "n) * steps[c]", "n)"),
        ("turns_of_a_ring_of_one", "(q.has_times and 1 or n) * steps[c]", "steps[c]"),
        ("who_has_gone_takes_turns", "if not more then n = n - 1 end", ""),
        ("turns_move_on_once", "sift(turns, heap, more and c or table.remove(heap))", "table.remove(heap, 1)"),
        ("a_lane_is_read_once", "turns.is_read[c] or #line > turns.taken[c] + 1", "#line > 0"),
        ("the_blocked_lose_their_turn", "if q.has_times then keep_turn(", "if false then keep_turn("),
        ("times_move_on_by_clients", "(q.has_times and 1 or n)", "n"),
    ),
    "lib/workers": (
        ("silence_goes_unnoticed", "if silence > lease_ms / 2 or", "if"),
        ("each_outage_holds_anew", "hold > last and hold + silence or now", "now"),
        ("time_that_was_slow_becomes_fast", "tenths - 9 * clock", "math.floor(tenths / 10)"),
    ),
    "move": (
        ("lines_do_not_move", 'if redis.call("EXISTS", q.log .. id) == 1 then', "if false then"),
        ("who_was_moved_is_missing", '  if redis.call("HEXISTS", target.jobs, id) == 1 or', "  if"),
        (
            "who_ended_there_is_missing",
            '  if redis.call("HEXISTS", target.jobs, id) == 1 or has_ended(target, id)',
            '  if redis.call("HEXISTS", target.jobs, id) == 1',
        ),
        ("successors_leave", "if waits and", "if false and"),
        ("successors_are_left", "if job.is_owner and is_successor", "if false and is_successor"),
        ("the_dead_enter_beside_one_like_them", "(job.is_owner or (digest and job.is_dead))", "job.is_owner"),
        ("lines_stay_behind", 'if redis.call("EXISTS", q.log .. id) == 1 then redis', "if false then redis"),
    ),
    "pause_task": (
        ("a_pause_takes_another_number", "local number = entry or free_number(q)", "local number = free_number(q)"),
    ),
    "promote": (
        (
            "many_due_jobs_go_by_time",
            "local has_more_than_limit = #due == 2 * limit",
            "local has_more_than_limit = false",
        ),
        (
            "many_due_jobs_go_by_turns_alone",
            "has_more_than_limit and math.ceil(limit / BY_TIME)",
            "has_more_than_limit and 0",
        ),
        ("who_was_served_stays_ahead", "math.max(now, next_due)", "next_due"),
        (
            "index_is_not_looked_through",
            "if not has_more_than_limit and #picked.clients > 0 then",
            "if not has_more_than_limit then",
        ),
        (
            "promote_forgets_who_is_next",
            "math.min(resume_due(q, limit) or math.huge,",
            "math.min(resume_due(q, limit) and math.huge or math.huge,",
        ),
        ("promote_forgets_the_next_job", "or math.huge, next_due or math.huge)", "or math.huge, math.huge)"),
    ),
    "purge": (
        ("purge_takes_others_scheduled", "local scheduled = is_of_client and", "local scheduled = false and"),
        ("waiting_jobs_are_not_set_aside", "then set_aside(q, undo, ids, ", "then tostring("),
    ),
    "queries/queue_overview": (
        (
            "an_empty_queue_has_clients",
            'math.min(redis.call("ZCARD", q.lanes), queued)',
            'redis.call("ZCARD", q.lanes)',
        ),
        ("an_empty_queue_has_an_oldest", "queued > 0 and oldest_startable(q, now)", "oldest_startable(q, now)"),
    ),
    "queries/search_jobs": (
        (
            "any_id_is_found",
            "if string.sub(id, 1, #prefix) ~= prefix or known[n].is_seen then",
            "if known[n].is_seen then",
        ),
        ("who_was_seen_is_found_again", "~= prefix or known[n].is_seen then", "~= prefix then"),
        (
            "times_of_lists_do_not_count",
            "return not time or (time >= (since or time) and time <= (till or time))",
            "return true",
        ),
        ("searched_since_without_that_moment", "time >= (since or time)", "time > (since or 0)"),
        ("searched_until_without_that_moment", "time <= (till or time)", "time < (till or math.huge)"),
        ("searches_do_not_stop", "while looked < #places and #answer < enough and", "while looked < #places and"),
        (
            "a_part_is_passed_over",
            "looked, read = math.min(looked + PART, #places)",
            "looked, read = math.min(looked + PART + 1, #places)",
        ),
        (
            "numbers_are_those_of_the_part",
            "answer[#answer + 1] = { n, places[n]",
            "answer[#answer + 1] = { 0, places[n]",
        ),
        ("a_search_begins_again", "places[looked] or places.behind or at,", "at,"),
    ),
    "register_waiter": (("a_shorter_wait_ends_a_longer", '"ZADD", q.waiters, "GT", now', '"ZADD", q.waiters, now'),),
    "repair_lanes": (
        ("repair_revives_lost_workers", "q.workers, now, holders[i]", "q.workers, now + 60000, holders[i]"),
    ),
    "restore": (
        (
            "the_first_come_back_first",
            "for _, parts in ipairs(jobs) do",
            "for n = #jobs, 1, -1 do local parts = jobs[n]",
        ),
        ("every_call_was_sent_before", "if last == call then", "if last then"),
    ),
    "retry": (
        ("retried_as_nobodys", "jobs[i + 3], jobs[i + 4]", 'jobs[i + 3], ""'),
        ("a_failure_is_not_told_again", 'if failures ~= "0" or not is_same_error(', "if not is_same_error("),
    ),
    "trim": (("trim_keeps_the_old_dead", '"-inf", now - dead_ms', '"-inf", 0'),),
}
QUOTED_MUTANTS += tuple(
    Mutant(name, file, old, new) for file, texts in IN_OTHER_FUNCTIONS.items() for name, old, new in texts
)
