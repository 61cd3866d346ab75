"""Quoted mutants: mistakes that no rule makes, those that stand for a guarantee (see docs/guarantees.md), and those in
functions that found_by.json does not name, whose mutants nobody has judged."""

from tests.support.mutant import Mutant

QUOTED_MUTANTS = (
    # G1: no job is lost, or in two places
    Mutant("claim_trims_one_too_many", "lib/turns", "lanes[c], taken, -1", "lanes[c], taken + 1, -1"),
    Mutant("a_job_deep_in_its_lane_is_overlooked", "lib/lanes", "NEAR = 200", "NEAR = 1"),
    # G3: failures and crashes are counted
    Mutant("crash_not_counted", "lib/reclaim", '"HINCRBY", q.crashes, id, 1', '"HINCRBY", q.crashes, id, 0'),
    Mutant("others_beside_suspects", "lib/claim", "return claim.suspects == 0 end", "return true end"),
    Mutant("errors_without_end", "lib/failures", "KEPT_ERRORS = 5", "KEPT_ERRORS = 6"),
    # G4: only the holder of a job may settle it, and once
    Mutant(
        "finish_without_ownership_check", "lib/settle", "if held[i] then", 'held[i] = held[i] or ""\n    if true then'
    ),
    Mutant("cancel_while_it_runs", "cancel", 'return { "asked", worker }', ""),
    # G5: who is given up, and when
    Mutant("innocent_are_guilty", "reclaim_child", "guilty.lapsed or guilty[id]", "true"),
    Mutant("reclaim_before_the_deadline", "reclaim", '"-inf", now, "LIMIT", 0, 10', '"-inf", now + 1, "LIMIT", 0, 10'),
    # G6: order and turns
    Mutant("band_order_reversed", "claim", '"ZREVRANGE", q.bands', '"ZRANGE", q.bands'),
    Mutant("front_ignored", "lib/enqueue", 'front ~= "" and "LPUSH"', 'false and "LPUSH"'),
    Mutant("released_in_reverse", "settle", 'verb == "release" and #ids + 1 - n or n', "n"),
    Mutant("requeued_ahead", "requeue", "(%-?%d+)%+?(", "(%-?%d+%+?)("),
    Mutant("promoted_too_early", "promote", '"-inf", now, "WITHSCORES"', '"-inf", now + 1, "WITHSCORES"'),
    Mutant("looked_at_too_far", "promote", '"-inf", now, "LIMIT", 0, most', '"-inf", "+inf", "LIMIT", 0, most'),
    # G8: enqueued twice is enqueued once
    # G9: of those alike one lives
    # G10: nothing grows for ever
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
    Mutant("due_signal_only_once", "lib/schedule", "if due < next_due then", "if next_due == math.huge then"),
    Mutant(
        "oldest_is_a_cancelled_id",
        "lib/startable",
        'are_exact = redis.call("EXISTS", q.cancelled_in_lane) == 0',
        "are_exact = true",
    ),
    # limits: which of several texts holds
    Mutant(
        "one_more_than_the_limit",
        "lib/limits",
        "of.most - (running[member] or 0)",
        "of.most + 1 - (running[member] or 0)",
    ),
    Mutant("jobs_of_the_queue_not_counted", "lib/running_counts", "or total)", "or 0)"),
    Mutant(
        "the_settings_win",
        "set_limits",
        '"run:" .. field, "settings:" .. field)',
        '"settings:" .. field, "run:" .. field)',
    ),
    Mutant(
        "other_values_are_lost",
        "set_limits",
        'text, paused = table.concat(texts, " ")',
        'text, paused = texts[1] or ""',
    ),
    Mutant("settings_are_lost", "set_limits", "for i = 1, 2 do texts", "for i = 1, 1 do texts"),
    Mutant(
        "a_pause_may_limit_waiting",
        "set_limits",
        'redis.call("ZREM", q.paused_clients, paused) end\n    return',
        'redis.call("ZREM", q.paused_clients, paused) end',
    ),
    Mutant(
        "weights_are_noted_twice",
        "set_limits",
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
    Mutant(
        "the_last_word_on_times_wins",
        "lib/limits",
        'value_of(values, "fair_by") == "seconds"',
        'string.find(values, " fair_by=seconds", 1, true) ~= nil',
    ),
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
        ("lines_of_too_many", "q.logged, unpack(over)) - most", "q.logged, unpack(over)) * 0"),
    ),
    "lib/assign": (("suspect_for_a_busy_worker", "if given > 0 and claim.suspects == 0 then", "if false then"),),
    "lib/search_steps": (
        ("all_delayed_jobs_are_searched_for_a_client", 'not is_dead and of_client ~= ""', "false"),
        ("the_oldest_dead_come_first", 'most, list == "dead")', "most, false)"),
    ),
    "lib/virtual_turns": (
        ("turns_do_not_move_on", "+ (q.has_times and estimate(share) or n) * share.stride", ""),
        ("turns_of_the_same_stride", "or n) * share.stride", "or n)"),
        ("turns_of_a_ring_of_one", "estimate(share) or n) *", "estimate(share) or 1) *"),
        ("who_has_gone_takes_turns", "if not stays then n = n - 1 end", ""),
        ("turns_move_on_once", "sift(turns, heap, stays and c or table.remove(heap))", "table.remove(heap, 1)"),
        ("a_lane_is_read_once", "turns.is_read[c] or line[turns.taken[c] + 2]", "#line > 0"),
        ("times_move_on_by_clients", "(q.has_times and estimate(share) or n)", "n"),
        ("charges_are_forgotten", "  share.charged = charged\n", ""),
        ("debts_outlive_all_jobs", 'redis.call("EXISTS", q.lanes) == 1', "true"),
    ),
    "queries/search_jobs": (
        ("searches_do_not_stop", "while looked < #places and #answer < enough and", "while looked < #places and"),
        (
            "numbers_are_those_of_the_part",
            "= { n, place, job",
            "= { 0, place, job",
        ),
    ),
}
QUOTED_MUTANTS += tuple(
    Mutant(name, file, old, new) for file, texts in IN_OTHER_FUNCTIONS.items() for name, old, new in texts
)
