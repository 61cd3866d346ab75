"""Mutants of what is kept of finished jobs: their ids and their outcomes."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

# Lines of lib/retention.lua that differ from others by what is before or behind them.
OLD_TEXTS_GO = '    redis.call("HDEL", q.results, unpack(ids))\n'
OLD_TIMES_GO = '    redis.call("ZREM", q.result_times, unpack(ids))\n'
OLD_EXPIRIES_GO = '    redis.call("ZREM", q.result_expiry, unpack(ids))\n'
RECENT_TEXTS_GO = '\n  redis.call("HDEL", q.results, unpack(ids))'
EXPIRED_TIMES_GO = '    redis.call("ZREM", q.result_times, unpack(gone))\n'
EXPIRED_EXPIRIES_GO = '    redis.call("ZREM", q.result_expiry, unpack(gone))\n'
ALL_WITHOUT = 'redis.call("RPUSH", q.no_outcome, unpack(ids))'

# G10: nothing grows for ever. G8: an id is known for its time.
OUTCOME_MUTANTS = (
    Mutant("results_without_end", "if over > 0 then drop", "if false then drop"),
    Mutant("all_that_is_too_much_goes_at_once", "math.min(number, AT_ONCE)", "math.min(number, 5000)"),
    Mutant("more_goes_than_is_too_much", "over + math.floor(most / 100)", "over + math.ceil(most / 100)"),
    Mutant("recent_outcomes_go_before_old_ones", "local old = #ids", "local old = 0"),
    Mutant("recent_outcomes_go_with_old_ones", "number - old - 1)", "number - 1)"),
    Mutant("the_latest_outcomes_go_first", "q.recent_results, 0, number", "q.recent_results, -1, number"),
    Mutant("dropped_outcomes_keep_their_text", OLD_TEXTS_GO, ""),
    Mutant("dropped_outcomes_keep_their_time", OLD_TIMES_GO, ""),
    Mutant("dropped_outcomes_keep_their_expiry", OLD_EXPIRIES_GO, ""),
    Mutant("dropped_recent_outcomes_keep_their_text", RECENT_TEXTS_GO, ""),
    Mutant("dropped_outcomes_stay_in_the_list", 'redis.call("LTRIM", q.recent_results, #ids, -1)', NOTHING),
    Mutant("outcomes_tell_no_time", "times .. outcome", "outcome"),
    Mutant("outcomes_are_in_no_index", 'redis.call("RPUSH", q.recent_results, unpack(kept))', NOTHING),
    Mutant("each_is_kept_as_long_as_the_first", "if list[i + 1] ~= keep_ms then", "if not keep_ms then"),
    Mutant("an_id_is_forgotten_at_once", 'redis.call("SADD", q.finished, unpack(ids))', NOTHING),
    Mutant("who_has_no_outcome_is_not_told_of", 'redis.call("RPUSH", q.no_outcome, unpack(without))', NOTHING),
    Mutant("who_has_an_outcome_has_none", 'redis.call("RPUSH", q.no_outcome, unpack(without))', ALL_WITHOUT),
    Mutant("ids_of_the_last_period_are_unknown", ' or redis.call("SISMEMBER", q.finished_before, id) == 1', ""),
    Mutant("ids_of_this_period_are_unknown", 'redis.call("SISMEMBER", q.finished, id) == 1 or ', ""),
    Mutant("many_ids_of_the_last_period_are_unknown", " or before[i] == 1", ""),
    Mutant("many_ids_of_this_period_are_unknown", " or finished[i] == 1", ""),
    Mutant("a_period_ends_too_early", "age < PERIOD_MS", "age < PERIOD_MS - 1"),
    Mutant("a_period_ends_too_late", "age < PERIOD_MS", "age <= PERIOD_MS"),
    Mutant("a_period_begins_never", 'redis.call("HSET", q.clock, "rotated", now)', NOTHING),
    Mutant("ids_are_kept_for_ever", "if age < 0 then return end", "if true then return end"),
    Mutant("a_clock_that_was_ahead_ends_a_period", "if age < 0 then return end", ""),
    Mutant("a_clock_that_was_ahead_keeps_ids", "age >= 0 and ", ""),
    Mutant("heartbeats_forget_no_ids", "\nrotate_ids(q, now)", NOTHING, ("renew",)),
    Mutant("trim_forgets_no_ids", "\nrotate_ids(q, now)", NOTHING, ("trim",)),
    Mutant("ids_without_an_outcome_stay", 'redis.call("RENAME", q.no_outcome, q.no_outcome_before)', NOTHING),
    Mutant("trim_takes_anything_for_a_time", '"^(%d+) (%d+) "', '"(%d+) (%d+) "'),
    Mutant("trim_keeps_no_outcome", "finished_at and until_ms > now", "false"),
    Mutant("trim_keeps_outcomes_too_long", "until_ms > now then", "until_ms >= now then"),
    Mutant("trim_keeps_old_outcomes_too_long", 'q.result_expiry, "-inf", now,', 'q.result_expiry, "-inf", now - 1,'),
    Mutant("trim_moves_recent_outcomes", "now - finished_at < RECENT_MS", "now - finished_at < RECENT_MS - 1"),
    Mutant("trim_moves_outcomes_too_late", "now - finished_at < RECENT_MS", "now - finished_at <= RECENT_MS"),
    Mutant("trim_waits_for_a_clock_that_was_ahead", "finished_at <= now and ", ""),
    Mutant("trim_looks_at_all_outcomes", "0, TEXTS_AT_ONCE - 1", "0, -1"),
    Mutant("trim_looks_again_and_again", 'if n > 0 then redis.call("LTRIM", q.recent_results, n, -1) end', ""),
    Mutant("trimmed_outcomes_keep_their_time", EXPIRED_TIMES_GO, ""),
    Mutant("trimmed_outcomes_keep_their_expiry", EXPIRED_EXPIRIES_GO, ""),
    Mutant("trim_keeps_results", 'redis.call("HDEL", q.results, unpack(gone))', "0"),
    Mutant("trim_tells_nothing_of_what_is_left", " or n == TEXTS_AT_ONCE", ""),
    # Counters of hours
    Mutant("a_minute_is_not_rolled_up", "hour * 60 + 59", "hour * 60 + 58", ("roll_up",)),
    Mutant("the_present_hour_is_rolled_up", "math.min(from + most, present)", "from + most", ("roll_up",)),
    Mutant("half_an_hour_is_rolled_up", "STATS_SECONDS / 3600 + 1", "STATS_SECONDS / 3600", ("roll_up",)),
    Mutant("an_hour_is_not_rolled_up", "STATS_SECONDS / 3600 + 1", "STATS_SECONDS / 3600 + 2", ("roll_up",)),
    Mutant("hours_are_rolled_up_at_once", "math.min(from + most, present)", "present", ("roll_up",)),
    Mutant("hours_are_rolled_up_again", '"rolled_up", string.format("%.0f", ends)', '"rolled_up", "0"', ("roll_up",)),
    Mutant("hours_are_kept_for_ever", 'redis.call("EXPIRE", key, HOURS_SECONDS)', NOTHING, ("roll_up",)),
    Mutant("who_was_cancelled_is_taken_for_finished", '^%d+ %d+ {"state"', '^%d+ {"state"', ("cancel",)),
    Mutant("who_finished_long_ago_is_unknown", 'redis.call("HEXISTS", q.results, id) == 1 or ', ""),
)
