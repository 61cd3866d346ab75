"""Which scenario of scenarios_undo.py finds which mutants: see found_by.py."""

from __future__ import annotations

UNDO_FOUND_BY = {
    "dead_letters_come_back": """
        dead_letters_are_not_set_aside lists_without_bytes crashes_are_not_set_aside lists_for_ever
        empty_lists_are_remembered restored_without_the_rest restored_in_another_place a_call_sent_twice_goes_on
        every_call_was_sent_before what_is_restored_is_kept restored_jobs_take_room
    """,
    "waiting_jobs_come_back": """
        the_retrying_are_scheduled waiting_jobs_are_not_set_aside restored_without_retrying
        restored_behind_others the_first_come_back_first
    """,
    "what_runs_by_itself_is_not_restored": "the_finished_are_restored ids_of_this_period_are_unknown",
    "what_is_there_again_stays_as_it_is": "restored_twice",
    "unique_jobs_come_back": "restored_beside_another restored_without_its_digest",
    "a_started_job_comes_back_beside_another": "the_started_hold_digests",
    "successors_come_back": "successors_stay_away successors_of_nobody_wait",
    "what_a_pause_held_comes_back": "the_held_stay_in_scheduled the_held_waited_since_now",
    "large_jobs_go_and_come_back_in_several_calls": """
        large_jobs_are_copied_at_once failures_are_not_large all_that_are_dead_are_deleted
        large_jobs_are_restored_at_once
    """,
    "a_forgotten_queue_comes_back": """
        restored_queues_stay_forgotten an_id_is_forgotten_at_once who_has_no_outcome_is_not_told_of
        a_clock_that_was_ahead_ends_a_period
    """,
}
