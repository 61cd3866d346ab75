"""Which scenario finds which mutants: it is played first.

A mutant that its scenario does not find any more only takes longer: all scenarios are played.
"""

from __future__ import annotations

from tests.broker.model.found_by_limits import LIMITS_FOUND_BY
from tests.broker.model.found_by_undo import UNDO_FOUND_BY
from tests.broker.model.found_by_weights import WEIGHTS_FOUND_BY

FOUND_BY = {
    **LIMITS_FOUND_BY,
    **UNDO_FOUND_BY,
    **WEIGHTS_FOUND_BY,
    "people_search_waiting_jobs": """
        any_id_is_found who_was_seen_is_found_again times_of_lists_do_not_count
        searched_since_without_that_moment searched_until_without_that_moment times_of_records_count_as_well
        numbers_are_those_of_the_part a_search_begins_again retrying_jobs_are_scheduled_ones
        all_delayed_jobs_are_searched_for_a_client
        no_retrying_job_is_known who_is_due_with_the_last_is_left_out lists_end_with_the_first_step
        lists_never_end_at_one_client
    """,
    "people_search_running_and_dead_jobs": """
        the_oldest_dead_come_first who_died_with_the_last_is_left_out who_was_claimed_with_the_last_is_left_out
        who_was_claimed_with_the_last_is_found_again running_jobs_end_with_the_first_step
    """,
    "people_search_finished_jobs": "the_last_word_decides no_word_of_an_id_is_found",
    "long_searches_stop_in_between": "a_search_that_stops_is_over searches_do_not_stop a_part_is_passed_over",
    "jobs_log_lines": """
        lines_of_others lines_are_added_again parts_are_compared_as_texts lines_of_another_process_are_known
        lines_without_end one_line_too_many
    """,
    "lines_of_many_jobs_are_kept": """
        noted_without_lines noted_again lines_of_too_many too_many_are_noted their_lines_stay
    """,
    "lines_go_with_their_jobs": """
        discard_keeps_lines trim_keeps_lines purge_keeps_lines cancelled_jobs_lose_their_lines
        trimmed_outcomes_keep_their_time trimmed_outcomes_keep_their_expiry lines_do_not_move
    """,
    "counters_are_rolled_up": """
        a_minute_is_not_rolled_up the_present_hour_is_rolled_up half_an_hour_is_rolled_up
        an_hour_is_not_rolled_up hours_are_rolled_up_at_once hours_are_rolled_up_again hours_are_kept_for_ever
    """,
    "clients_take_turns": """
        band_order_reversed turn_not_advanced the_most_served_come_first released_to_the_end
        released_after_all_others front_ignored
    """,
    "work_is_settled": """
        finish_without_ownership_check retry_without_ownership_check bury_without_ownership_check
        release_without_ownership_check running_entry_kept_on_ack released_in_reverse
        enqueue_many_forgets_finished many_ids_of_this_period_are_unknown
    """,
    "known_jobs_are_taken_in_once": """
        enqueue_without_exists_check enqueue_forgets_cancelled_ids enqueue_many_without_exists_check
        enqueue_many_forgets_cancelled_ids no_turns_for_many_clients work_signal_not_set
        work_signal_not_set_for_many claim_takes_the_token_along front_ignored_among_many
    """,
    "failures_are_counted": """
        running_entry_kept_on_retry promoted_too_early claim_leaves_the_one buried_nowhere errors_without_end
        forget_keeps_errors
    """,
    "nobody_knows_a_task": """
        unknown_is_told_again_and_again a_failure_is_not_told_again an_older_failure_of_the_kind_will_do
    """,
    "jobs_wait_for_their_time": "due_signal_only_once retry_wakes_no_scheduler skew_is_believed",
    "the_guilty_crash": """
        unknown_worker_may_claim the_guilty_come_first the_innocent_lose_their_turn released_beside_the_first
        dead_not_added crash_of_no_task crashes_are_not_counted crash_counts_everyone_dead failure_not_counted
        failures_are_no_attempts crashes_are_no_attempts suspects_beside_others others_beside_suspects
        promote_forgets_retrying index_keeps_the_promoted
    """,
    "a_suspect_waits_behind_others": "suspect_for_a_busy_worker suspect_beside_what_runs suspects_without_a_limit",
    "a_lease_lasts_to_the_end": """
        reclaim_before_the_deadline ids_are_kept_for_ever heartbeats_forget_no_ids ids_without_an_outcome_stay
    """,
    "leases_run_out": """
        renew_revives_the_unknown reclaim_drops_the_rest reclaim_ignores_hold silence_goes_unnoticed
        an_outage_costs_half_a_lease_too leases_go_on_in_an_outage
    """,
    "outages_come_again_and_again": "each_outage_holds_anew",
    "dead_letters_are_trimmed": "trim_keeps_the_old_dead",
    "a_log_was_torn": """
        repair_overlooks_the_ring repair_overlooks_the_band given_back_twice
        a_job_deep_in_its_lane_is_overlooked
    """,
    "a_log_was_torn_at_the_end_of_a_job": "over_and_cancelled_all_the_same",
    "fewer_outcomes_are_kept_than_before": "all_that_is_too_much_goes_at_once",
    "the_longer_of_two_waits_counts": "a_shorter_wait_ends_a_longer",
    "a_schedule_began_by_a_clock_that_was_ahead": """
        a_schedule_that_began_too_late a_slot_that_fired_too_early resume_wakes_nobody a_period_begins_never
        a_clock_that_was_ahead_keeps_ids trim_forgets_no_ids
    """,
    "jobs_that_waited_go_first": """
        promoted_among_the_others promoted_below_the_others given_back_among_the_others requeued_ahead
        many_due_jobs_go_by_time many_due_jobs_go_by_turns_alone cancel_forgets_the_cancelled_id
        claim_keeps_the_cancelled_id claim_leaves_cancelled_ids_in_front requeue_keeps_failures
        requeue_keeps_crashes
    """,
    "clients_of_many_due_jobs_take_turns": """
        one_client_takes_all_turns who_was_served_stays_ahead who_was_served_has_no_turn free_places_stay_empty
        promoted_twice_in_a_call looked_at_too_far looked_at_too_late_for_many claim_trims_one_too_many
        claim_trims_one_too_few
    """,
    "what_waits_no_more_leaves_the_index": """
        due_signal_only_once_for_many looked_at_for_the_last never_looked_at not_in_the_index
        of_many_none_in_the_index retried_as_nobodys index_keeps_the_torn index_is_not_looked_through
        index_keeps_clients cancel_keeps_the_index run_now_keeps_the_index purge_keeps_the_index
        cancel_keeps_the_client purge_keeps_the_scheduled
    """,
    "outcomes_are_too_many": """
        dropped_outcomes_keep_their_text outcomes_tell_no_time trim_keeps_no_outcome trim_moves_recent_outcomes
    """,
    "outcomes_are_looked_at_step_by_step": """
        trim_looks_at_all_outcomes trim_looks_again_and_again trim_keeps_results
        trim_tells_nothing_of_what_is_left trim_waits_for_a_clock_that_was_ahead
    """,
    "an_outcome_cannot_be_read": "trim_takes_anything_for_a_time",
    "people_stop_what_runs": """
        cancel_never_terminates cancel_takes_terminate_back cancelled_is_finished retry_ignores_the_wish
        bury_ignores_the_wish release_ignores_the_wish reclaim_ignores_the_wish reclaim_child_ignores_the_wish
        stopped_jobs_are_not_counted progress_of_others who_was_cancelled_is_taken_for_finished
        forget_keeps_the_wish forget_keeps_progress
    """,
    "people_move_jobs": """
        what_runs_is_moved who_was_moved_is_missing they_waited_for_the_move the_dead_expire_there
        moved_and_not_retrying the_dead_keep_their_counts counts_stay_behind errors_stay_behind
        moved_and_unknown moved_from_the_middle moved_and_first the_next_waits_as_long moved_and_scheduled
        moved_and_dead moves_are_not_counted lines_stay_behind back_and_finished back_twice back_and_cancelled
    """,
    "people_move_jobs_back": """
        who_ended_there_is_missing moved_to_no_queue moved_again back_later_and_finished
        the_lane_behind_waits_as_long
    """,
    "people_move_jobs_that_have_waited": "the_held_stay_held the_held_waited_for_the_move moved_ahead",
    "people_move_unique_jobs": """
        successors_leave successors_are_left moved_beside_one_like_it the_dead_enter_beside_one_like_them
        moved_without_its_digest the_dead_enter_without_their_digest moved_without_its_note
    """,
    "people_forget_a_queue": """
        forget_overlooks_jobs forget_overlooks_a_pause forget_overlooks_workers forget_overlooks_finished_ids
        forget_overlooks_outcomes forget_comes_too_soon forget_keeps_lanes forget_keeps_rings forgotten_for_ever
        forget_keeps_counters a_period_ends_too_late
    """,
    "people_pause": "sign_off_leaves_jobs_behind paused_is_ignored",
    "people_let_jobs_run_before_their_time": "run_now_of_what_does_not_wait",
    "people_change_arguments": "a_later_death_is_meant_too changed_keeps_its_arguments expires_before_it_is_ready",
    "people_release_a_worker": "released_while_it_lives suspect_among_others",
    "of_those_alike_one_lives": """
        digest_not_held crashed_with_the_digest unique_without_exists_check no_ring_entry_on_give_back
        no_turn_for_a_client crash_not_counted max_crashes_off_by_one
        crash_is_no_failure purge_keeps_cancelled_ids since_is_kept time_runs_backwards
        time_that_was_slow_becomes_fast
    """,
    "the_dead_keep_nobody_out": "buried_with_the_digest",
    "until_it_starts": """
        held_until_done_all_the_same held_until_it_started_once digest_of_another_is_freed digest_is_not_freed
        digests_are_kept forget_overlooks_digests
    """,
    "a_change_comes_while_it_runs": """
        successor_does_not_hold every_change_runs first_change_counts change_before_it_runs
        no_limit_for_successors successor_is_forgotten_when_sent_twice requeued_beside_another
        requeued_without_its_digest
    """,
    "heirs_come_too_late": "successor_takes_it_from_another successor_waits_for_ever successor_that_goes_with_it",
    "an_heir_has_run_before_its_time": "successor_that_has_run_runs_again",
    "who_waits_for_another_is_not_run_before_it": "run_now_beside_one_like_it run_now_leaves_it_scheduled",
    "the_last_time_counts": """
        replaced_while_it_runs replaced_job_leaves_its_lane replaced_job_stays_in_retrying
        replaced_job_is_in_two_places replaced_job_keeps_its_time replaced_beside_its_client
    """,
    "the_last_client_counts": "changed_beside_its_client looked_at_too_late",
    "people_cancel_all_of_a_client": """
        skipped_too_many trimmed_ids_stay_noted an_empty_lane_stays_indexed cancelled_without_an_outcome
        cancelled_is_purged cancelled_and_still_scheduled skipped_too_many_of_a_lane more_goes_than_is_too_much
        the_latest_outcomes_go_first dropped_recent_outcomes_keep_their_text dropped_outcomes_stay_in_the_list
        outcomes_are_in_no_index
    """,
    "people_cancel_what_a_client_had_at_a_moment": """
        a_later_job_is_cancelled an_id_without_a_time_is_later later_jobs_leave_the_lane
        looked_at_again_and_again soonest_first those_behind_are_not_noted trimmed_in_the_middle
        each_band_is_started_later one_band_only started_with_the_first_band
    """,
    "a_task_is_paused": """
        a_pause_begins_anew a_pause_holds_nothing a_paused_task_pauses_the_queue jobs_behind_others_are_held
        held_since_now held_and_in_the_lane the_held_are_missing_in_the_index nobody_looks_at_the_held
        no_scheduler_goes_on the_oldest_come_back_first they_come_back_behind_others back_and_held
        they_waited_for_the_resume who_comes_back_gets_no_turn a_pause_is_never_forgotten
    """,
    "the_scheduler_gives_the_rest_back": """
        a_pause_takes_another_number two_pauses_have_one_number promote_forgets_the_held promote_does_not_go_on
        promote_resumes each_pause_gives_back_a_whole_call the_resumed_do_not_run_now
    """,
    "held_jobs_are_cancelled_and_purged": "a_resumed_task_holds_jobs the_held_run_now",
    "jobs_come_back_in_their_order": """
        jobs_further_behind_are_given the_held_still_wait resumed_and_paused their_lanes_are_as_young_as_before
        a_pause_is_forgotten_too_early
    """,
    "a_client_at_its_limit_waits_since_its_next_job": "a_lane_stays_as_old_as_the_held",
    "what_fails_and_crashes_is_held": "the_held_are_due_in_a_thousand_years",
    "ids_are_known_until_the_end_of_the_next_period": """
        enqueue_forgets_finished ids_of_the_last_period_are_unknown many_ids_of_the_last_period_are_unknown
        a_period_ends_too_early who_finished_long_ago_is_unknown
    """,
    "people_purge_one_client": "purge_takes_others_lanes purge_takes_others_scheduled purge_overlooks_blocked_clients",
    "old_and_recent_outcomes_are_too_many": """
        recent_outcomes_go_before_old_ones recent_outcomes_go_with_old_ones dropped_outcomes_keep_their_time
        dropped_outcomes_keep_their_expiry trim_moves_outcomes_too_late
    """,
    "outcomes_differ_in_one_call": "each_is_kept_as_long_as_the_first who_has_an_outcome_has_none",
    "outcomes_are_kept_for_their_time": "trim_keeps_outcomes_too_long trim_keeps_old_outcomes_too_long",
}
