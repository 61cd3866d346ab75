"""Mutants of turns by the time that jobs used."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

TIME_MUTANTS = (
    # what is known of jobs
    Mutant("starts_are_not_charged", "used.charged = used.charged + n * estimate(used)", NOTHING),
    Mutant("starts_are_not_counted", "if q.has_times then charge_starts(q, started) end", NOTHING),
    Mutant("one_start_is_counted", "count_starts(used, owners[used.client], q.now)", "count_starts(used, 1, q.now)"),
    Mutant("estimates_without_end", "math.min(used.mean, MOST_MS)", "used.mean"),
    Mutant("the_average_is_the_last", "used.mean + (ran - used.mean) / 4", "ran"),
    Mutant("the_average_of_all_stays", "return mean + (ran - mean) / 16", "return mean"),
    Mutant("running_jobs_are_not_charged", "used.running * (now - BASE_MS) - used.starts)", "0)"),
    Mutant("workers_are_believed", "math.min(noted or math.huge, now - claimed_at)", "noted or now - claimed_at"),
    Mutant("workers_are_not_believed", "math.min(noted or math.huge, now - claimed_at)", "now - claimed_at"),
    Mutant("jobs_count_since_their_claim", "math.max(claimed_at, used.since)", "claimed_at"),
    Mutant("all_was_used_since", "math.max(0, math.min(ran, now - since))", "ran"),
    Mutant("ended_jobs_run", "math.max(0, used.running - 1)", "used.running"),
    Mutant("starts_of_ended_jobs_stay", "used.starts - (since - BASE_MS)", "used.starts"),
    # turns
    Mutant("running_jobs_are_not_looked_at", "charge_running(q, q.ring .. band, wanted)", NOTHING),
    Mutant("one_look_is_enough", "if not is_late then return end", "return"),
    Mutant(
        "late_charges_without_weight",
        "(charge - used.charged) * strides[i])\n        used",
        "charge - used.charged)\n        used",
    ),
    Mutant("late_charges_are_forgotten", "used.charged, is_late = charge, true", "is_late = true"),
    Mutant("newcomers_of_time_are_not_placed", "    place_by_time(q, band)\n", ""),
    Mutant("newcomers_of_time_come_first", "first + (used.running + 1) * estimate(used) * strides[i]", "first"),
    Mutant("newcomers_of_time_without_weight", "estimate(used) * strides[i] + i", "estimate(used) + i"),
    Mutant("newcomers_of_time_come_together", " + i / 1000", ""),
    Mutant("old_runs_are_charged_to_newcomers", "then count_anew(used, q.now) end", "then string.len(q.now) end"),
    Mutant("the_blocked_come_back_level", "if used.turn then turn = math.max(", "if false then turn = math.max("),
    Mutant("the_blocked_lose_their_turn", "if q.has_times then keep_turn(", "if false then keep_turn("),
    Mutant("the_blocked_owe_nothing", "if used.turn then used.turn = used.turn + ms end", NOTHING),
    Mutant("debts_have_no_end", "math.min(used.turn, first + DEBT_MS)", "used.turn"),
    Mutant("the_turn_of_the_blocked_stays", "      used.turn = nil\n", ""),
    Mutant("an_empty_ring_begins_at_zero", 'redis.call("HGET", q.job_times, "turn:" .. band) or 0', "0"),
    Mutant("who_has_nothing_left_owes_nothing", "q.has_times and taken > 0 and going_on or gone", "gone"),
    Mutant("debts_without_waiting_jobs", "q.has_more = has_waiting(q) and q.has_more", NOTHING),
    Mutant("steps_without_estimate", "steps[i] * estimate(used)", "steps[i]"),
    Mutant("times_move_on_by_clients", "(q.has_times and 1 or n)", "n"),
    # ends
    Mutant("ends_are_not_charged", "if there == 2 then charge_ended(", "if false then charge_ended("),
    Mutant("unrun_jobs_are_charged", "are_unrun and 0 or tonumber(noted)", "tonumber(noted)"),
    Mutant("unrun_jobs_make_the_average", 'if are_unrun or noted == "0" then', "if false then"),
    Mutant("what_was_charged_stays", "used.spent + charge - used.charged", "used.spent + charge"),
    Mutant(
        "ends_without_weight", "charge - used.charged) * strides[i])\n    used", "charge - used.charged))\n    used"
    ),
    Mutant(
        "other_rings_stay",
        'for _, band in ipairs(redis.call("ZRANGE", q.bands, 0, -1)) do\n    local turn',
        "for _, band in ipairs({}) do\n    local turn",
    ),
    Mutant("used_times_stay", 'redis.call("HDEL", q.job_times, "client:" .. used.client)', NOTHING),
    Mutant(
        "released_jobs_get_the_first_turn",
        "push_front(q, id, record, now, not is_timed)",
        "push_front(q, id, record, now, true)",
    ),
    Mutant("reclaimed_jobs_get_the_first_turn", "not has_run and not is_timed", "not has_run"),
    Mutant("reclaimed_jobs_have_run", "if is_timed and not has_run then", "if false then"),
    Mutant(
        "times_are_noted_for_others",
        'redis.call("HMGET", q.running, unpack(ids))',
        'redis.call("HMGET", q.running, ids[1])',
    ),
    # changes
    Mutant("by_time_without_marks", "if is_timed then mark_newcomers(q) else", "if not is_timed then"),
    Mutant("old_turns_are_times", "if is_other or", "if false or"),
    Mutant("weights_leave_debts", "(is_timed and changes.has_new_weights)", "false"),
    Mutant("times_outlast_their_end", 'else redis.call("DEL", q.job_times) end', "end"),
    Mutant("the_last_word_on_times_wins", '" fair_by=(%l+)") == "seconds"', '" fair_by=seconds") ~= nil'),
    Mutant("times_are_not_counted_again", "then recount_used(q, owners, claims) end", "then return end"),
    Mutant("counted_again_from_zero", "used.charged = charged\n", "\n"),
    Mutant("who_is_new_is_not_counted", "if is_new then count_anew(used, q.now) end", NOTHING),
    Mutant("who_is_gone_stays_counted", 'redis.call("HDEL", q.job_times, field)', NOTHING),
)
