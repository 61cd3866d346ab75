"""Mutants of searches."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

SEARCH_MUTANTS = tuple(
    mutant._replace(only=("search_jobs",))
    for mutant in (
        Mutant(
            "any_id_is_found",
            "if string.sub(id, 1, #prefix) ~= prefix or known[n].is_seen then",
            "if known[n].is_seen then",
        ),
        Mutant("who_was_seen_is_found_again", "~= prefix or known[n].is_seen then", "~= prefix then"),
        Mutant(
            "times_of_lists_do_not_count",
            "return not time or (time >= (since or time) and time <= (till or time))",
            "return true",
        ),
        Mutant("searched_since_without_that_moment", "time >= (since or time)", "time > (since or 0)"),
        Mutant("searched_until_without_that_moment", "time <= (till or time)", "time < (till or math.huge)"),
        Mutant(
            "times_of_records_count_as_well",
            "if not is_by_record then wanted.since, wanted.till = nil, nil end",
            NOTHING,
        ),
        Mutant("a_search_that_stops_is_over", 'if looked < #places then status = "more" end', NOTHING),
        Mutant("searches_do_not_stop", "while looked < #places and #answer < enough and", "while looked < #places and"),
        Mutant(
            "a_part_is_passed_over",
            "looked, read = math.min(looked + PART, #places)",
            "looked, read = math.min(looked + PART + 1, #places)",
        ),
        Mutant(
            "numbers_are_those_of_the_part",
            "answer[#answer + 1] = { n, places[n]",
            "answer[#answer + 1] = { 0, places[n]",
        ),
        Mutant("a_search_begins_again", "places[looked] or places.behind or at,", "at,"),
        Mutant("retrying_jobs_are_scheduled_ones", "known[i].is_seen or not is_meant", "known[i].is_seen"),
        Mutant("all_delayed_jobs_are_searched_for_a_client", 'state ~= "dead" and of_client ~= ""', "false"),
        Mutant("no_retrying_job_is_known", 'state == "retrying" and q.retrying or q.scheduled', "q.scheduled"),
        Mutant("the_oldest_dead_come_first", 'is_of_client = state == "dead", state', "is_of_client = false, state"),
        Mutant(
            "who_died_with_the_last_is_left_out",
            "is_equal and ((is_falling and id >= at[2])",
            "is_equal and ((is_falling)",
        ),
        Mutant("who_is_due_with_the_last_is_left_out", "(not is_falling and id <= at[2]))", "(not is_falling))"),
        Mutant(
            "lists_end_with_the_first_step",
            'return #places == most and "more" or "all", places',
            'return "all", places',
        ),
        Mutant("lists_never_end_at_one_client", "#at == 3 or #at == 6)", "#at == 3)"),
        Mutant("the_last_word_decides", "fits = fits and (has_word", "fits = (has_word"),
        Mutant(
            "no_word_of_an_id_is_found",
            "(has_word(outcome, spellings) or has_word(ids[i], spellings))",
            "has_word(outcome, spellings)",
        ),
        Mutant("who_was_claimed_with_the_last_is_left_out", "claimed == last and running[i] > at[2]", "false"),
        Mutant(
            "who_was_claimed_with_the_last_is_found_again", "claimed == last and running[i] > at[2]", "claimed == last"
        ),
        Mutant("running_jobs_end_with_the_first_step", 'return #held > most and "more" or "all"', 'return "all"'),
    )
)
