"""Mutants of the turns of clients with weights."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

WEIGHT_MUTANTS = (
    # who has which weight
    Mutant("weights_are_not_noted", "if changes.weights ~= 0 then add_weights(q, changes.weights) end", NOTHING),
    Mutant("weights_are_noted_twice", "local before, after = count_weight(", "local before, after = 0 * count_weight("),
    Mutant("weights_outlast_their_end", '<= 0 then redis.call("HDEL", q.limits, "weights") end', "< 0 then return end"),
    Mutant("weights_without_default", "or weights[0] or 1\n", "or 1\n"),
    Mutant(
        "weights_without_a_weight_of_the_default", "weights[i - 1] = limit_of", "weights[i - 1] = i > 1 and limit_of"
    ),
    Mutant("light_is_heavy", "default / weight", "weight / default"),
    # who comes to the ring
    Mutant("newcomers_without_a_mark", "if after == 1 then mark_newcomers(q) end", NOTHING),
    Mutant("newcomers_are_not_placed", "  place_newcomers(q, q.ring .. band)\n", ""),
    Mutant("newcomers_come_first", "(n + i - 1) * stride", "-(n + i - 1) * stride"),
    Mutant("newcomers_one_too_far", "(n + i - 1) * stride", "(n + i) * stride"),
    Mutant("newcomers_without_stride", "(n + i - 1) * stride", "(n + i - 1)"),
    Mutant("newcomers_begin_at_zero", "(first or 0) + (n + i - 1)", "(n + i - 1)"),
    Mutant("blocked_are_newcomers", 'NEWCOMERS, "(inf"', 'NEWCOMERS, "+inf"'),
    # whose turn it is
    Mutant("turns_without_weights", "if q.has_weights then return", "if false then return"),
    Mutant("turns_do_not_move_on", "+ (q.has_times and 1 or n) * steps[c]", ""),
    Mutant("turns_of_the_same_stride", "n) * steps[c]", "n)"),
    Mutant("turns_of_a_ring_of_one", "(q.has_times and 1 or n) * steps[c]", "steps[c]"),
    Mutant("who_has_gone_takes_turns", "if not more then n = n - 1 end", NOTHING),
    Mutant("turns_move_on_once", "sift(turns, heap, more and c or table.remove(heap))", "table.remove(heap, 1)"),
    Mutant("turns_in_the_order_of_reading", "if difference ~= 0 then return difference < 0 end", NOTHING),
    Mutant("ties_end_as_they_come", "(string.byte(one, i) or -1) < (string.byte(two, i) or -1)", "c < other"),
    Mutant(
        "heap_takes_the_first_child",
        "if heap[child + 1] and is_before(turns, heap[child + 1], heap[child])",
        "if false",
    ),
    Mutant("turns_are_lost", "turns.scores and turns.scores[client] or last + i", "last + i"),
    Mutant("a_batch_goes_beyond_what_it_has_read", "if c == claim.wanted then break end", NOTHING),
    Mutant("a_lane_is_read_once", "turns.is_read[c] or #line > turns.taken[c] + 1", "#line > 0"),
    Mutant(
        "cancelled_jobs_of_the_heavy_cost_turns",
        "if id and has_skips and is_to_skip(q, id) then break end",
        NOTHING,
    ),
    # changes
    Mutant("old_turns_stay", "elseif changes.has_new_weights then pull_back(q) end", "end"),
    Mutant("old_turns_stay_when_weights_end", "before + after > 0", "after > 0"),
    Mutant("only_one_is_pulled_back", '"(" .. NEWCOMERS, "LIMIT", 0, 500)', '"(" .. NEWCOMERS, "LIMIT", 0, 1)'),
    Mutant("newcomers_are_pulled_back", 'ring, last, "(" .. NEWCOMERS', 'ring, last, "(inf"'),
    Mutant("turns_are_put_off", '"LT", first[2], n', '"XX", first[2], n'),
    Mutant("old_numbers_are_turns", 'redis.call("ZADD", q.ring .. band, redis.call("INCR", q.turn), client)', NOTHING),
    Mutant("all_come_anew_at_each_weight", "> tonumber(NEWCOMERS) then return end", "< 0 then return end"),
)
