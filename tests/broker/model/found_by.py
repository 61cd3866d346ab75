"""Which scenario finds which mutants: it is played first.

A mutant that is not here, or that its scenario does not find any more, only takes longer: all scenarios are played.
"""

from __future__ import annotations

from tests.broker.model.found_by_undo import UNDO_FOUND_BY

FOUND_BY = {
    **UNDO_FOUND_BY,
    "people_search_waiting_jobs": """
        any_id_is_found who_was_seen_is_found_again times_of_lists_do_not_count searched_since_without_that_moment
        searched_until_without_that_moment times_of_records_count_as_well numbers_are_those_of_the_part
        a_search_begins_again retrying_jobs_are_scheduled_ones no_retrying_job_is_known
        who_is_due_with_the_last_is_left_out lists_end_with_the_first_step lists_never_end_at_one_client
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
    """,
    "a_full_client_wakes_nobody": """
        full_clients_wake_workers one_of_several_is_full rates_wake_nobody
    """,
    "a_full_client_waits_in_a_lower_band": "lower_bands_wake_nobody",
    "a_full_queue_wakes_nobody": "full_queues_wake_workers a_rate_of_the_queue_wakes_nobody",
    "a_function_lets_a_full_client_go_on": "new_answers_wake_nobody",
    "counters_are_rolled_up": """
        a_minute_is_not_rolled_up the_present_hour_is_rolled_up half_an_hour_is_rolled_up an_hour_is_not_rolled_up
        hours_are_rolled_up_at_once hours_are_rolled_up_again hours_are_kept_for_ever
    """,
    "a_function_says_limits": """
        a_function_has_no_say the_settings_win the_function_wins a_first_limit_of_a_function_counts_nothing
        nobody_goes_on_when_a_function_says_so a_met_client_is_not_noted the_forgotten_are_looked_at_again
    """,
    "a_function_is_not_asked_any_more": """
        a_client_that_waits_is_forgotten a_client_that_runs_jobs_is_forgotten limits_of_the_forgotten_stay
        clients_with_jobs_stay_first forgotten_too_early fewer_are_forgotten
    """,
    "all_or_none_make_room": """
        all_need_their_places_twice all_find_no_places all_must_fit_beside_what_is_queued
    """,
    "the_oldest_make_room": """
        the_newest_is_dropped dropped_without_an_outcome dropped_and_kept drops_are_not_counted drops_are_not_told
        a_place_of_the_queue_is_lost a_cancelled_id_makes_room_in_the_queue an_empty_lane_waits
        who_has_nothing_left_stays_in_the_ring an_empty_band_stays
    """,
    "the_oldest_of_a_client_make_room": """
        another_client_makes_room the_youngest_lane_makes_room the_last_makes_room a_place_of_the_client_is_lost
        a_lane_stays_as_old delayed_jobs_of_a_client_count_for_the_queue the_queue_makes_room_for_a_client
    """,
    "jobs_in_front_do_not_make_room": "jobs_put_in_front_make_room the_wrong_end_is_removed a_lane_gets_younger",
    "who_has_nothing_left_leaves_the_ring": "a_blocked_client_leaves_the_ring",
    "cancelled_jobs_make_room": "cancelled_ids_are_remembered",
    "delayed_jobs_are_not_dropped": "jobs_are_dropped_in_vain delayed_jobs_of_others_do_not_count",
    "more_has_to_go_than_one_call_drops": "a_call_drops_without_end a_call_drops_one_less",
    "clients_take_turns": """
        band_order_reversed turn_not_advanced the_most_served_come_first released_to_the_end
        released_after_all_others front_ignored
    """,
    "work_is_settled": """
        finish_without_ownership_check retry_without_ownership_check bury_without_ownership_check
        release_without_ownership_check running_entry_kept_on_ack released_in_reverse
    """,
    "known_jobs_are_taken_in_once": """
        enqueue_without_exists_check enqueue_forgets_finished enqueue_forgets_cancelled_ids
        enqueue_many_without_exists_check enqueue_many_forgets_finished enqueue_many_forgets_cancelled_ids
        no_turns_for_many_clients work_signal_not_set work_signal_not_set_for_many
        claim_takes_the_token_along front_ignored_among_many trim_keeps_outcomes_too_long
    """,
    "failures_are_counted": """
        running_entry_kept_on_retry promoted_too_early claim_leaves_the_one buried_nowhere
        errors_without_end forget_keeps_errors
    """,
    "nobody_knows_a_task": """
        unknown_is_told_again_and_again a_failure_is_not_told_again an_older_failure_of_the_kind_will_do
    """,
    "jobs_wait_for_their_time": "due_signal_only_once retry_wakes_no_scheduler skew_is_believed",
    "the_guilty_crash": """
        unknown_worker_may_claim the_guilty_come_first the_innocent_lose_their_turn
        released_beside_the_first dead_not_added crash_of_no_task crashes_are_not_counted crash_counts_everyone_dead
        failure_not_counted failures_are_no_attempts crashes_are_no_attempts suspects_beside_others
        others_beside_suspects promote_forgets_retrying index_keeps_the_promoted
    """,
    "a_suspect_waits_behind_others": "suspect_for_a_busy_worker suspect_beside_what_runs suspects_without_a_limit",
    "a_lease_lasts_to_the_end": "reclaim_before_the_deadline",
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
    "fewer_outcomes_are_kept_than_before": """
        all_that_is_too_much_goes_at_once what_was_to_be_kept_shortest_goes_first
        an_id_goes_with_its_outcome
    """,
    "the_longer_of_two_waits_counts": "a_shorter_wait_ends_a_longer",
    "a_schedule_began_by_a_clock_that_was_ahead": "a_schedule_that_began_too_late a_slot_that_fired_too_early",
    "jobs_that_waited_go_first": """
        promoted_among_the_others promoted_below_the_others given_back_among_the_others requeued_ahead
        many_due_jobs_go_by_time many_due_jobs_go_by_turns_alone cancel_forgets_the_cancelled_id
        claim_keeps_the_cancelled_id claim_leaves_cancelled_ids_in_front requeue_keeps_failures
        requeue_keeps_crashes
    """,
    "clients_of_many_due_jobs_take_turns": """
        one_client_takes_all_turns who_was_served_stays_ahead who_was_served_has_no_turn
        free_places_stay_empty promoted_twice_in_a_call looked_at_too_far looked_at_too_late
        looked_at_too_late_for_many claim_trims_one_too_many claim_trims_one_too_few
    """,
    "what_waits_no_more_leaves_the_index": """
        due_signal_only_once_for_many looked_at_for_the_last never_looked_at not_in_the_index
        of_many_none_in_the_index retried_as_nobodys index_keeps_the_torn index_is_not_looked_through
        index_keeps_clients cancel_keeps_the_index run_now_keeps_the_index purge_keeps_the_index
        cancel_keeps_the_client purge_keeps_the_scheduled
    """,
    "outcomes_are_too_many": """
        an_id_goes_a_ms_too_early an_id_stays_as_long_as_its_outcome a_dropped_outcome_is_taken_for_none
        ids_are_looked_at_too_early dropped_outcomes_count_on dropped_outcomes_keep_their_text
        outcomes_tell_no_time trim_keeps_no_outcome
    """,
    "outcomes_are_looked_at_step_by_step": """
        trim_looks_at_all_outcomes trim_looks_again_and_again trimmed_outcomes_count_on trim_keeps_results
        trim_keeps_ids trim_tells_nothing_of_what_is_left trim_looks_for_more_in_vain
    """,
    "an_outcome_cannot_be_read": "trim_takes_anything_for_a_time",
    "people_stop_what_runs": """
        cancel_never_terminates cancel_takes_terminate_back cancelled_is_finished retry_ignores_the_wish
        bury_ignores_the_wish release_ignores_the_wish reclaim_ignores_the_wish
        reclaim_child_ignores_the_wish stopped_jobs_are_not_counted progress_of_others
        who_was_cancelled_is_taken_for_finished forget_keeps_the_wish forget_keeps_progress
    """,
    "people_move_jobs": """
        what_runs_is_moved who_was_moved_is_missing they_waited_for_the_move the_dead_expire_there
        moved_and_not_retrying the_dead_keep_their_counts counts_stay_behind errors_stay_behind moved_and_unknown
        moved_from_the_middle moved_and_first the_next_waits_as_long moved_and_scheduled moved_and_dead
        moves_are_not_counted lines_stay_behind back_and_finished back_twice back_and_cancelled
    """,
    "people_move_jobs_back": """
        who_ended_there_is_missing moved_to_no_queue moved_again back_later_and_finished the_lane_behind_waits_as_long
    """,
    "people_move_jobs_that_have_waited": "the_held_stay_held the_held_waited_for_the_move moved_ahead",
    "people_move_unique_jobs": """
        successors_leave successors_are_left moved_beside_one_like_it the_dead_enter_beside_one_like_them
        moved_without_its_digest the_dead_enter_without_their_digest moved_without_its_note
    """,
    "people_forget_a_queue": """
        forget_overlooks_jobs forget_overlooks_a_pause forget_overlooks_workers forget_overlooks_finished_ids
        forget_overlooks_outcomes
        forget_comes_too_soon forget_keeps_lanes forget_keeps_rings forgotten_for_ever forget_keeps_counters
    """,
    "people_pause": "sign_off_leaves_jobs_behind paused_is_ignored",
    "people_let_jobs_run_before_their_time": "run_now_of_what_does_not_wait",
    "people_change_arguments": "a_later_death_is_meant_too changed_keeps_its_arguments expires_before_it_is_ready",
    "people_release_a_worker": "released_while_it_lives suspect_among_others",
    "cancelled_jobs_cost_no_turn": """
        claim_hands_out_up_to_a_cancelled_id oldest_is_a_cancelled_id an_empty_queue_has_clients
        results_without_end
    """,
    "behind_a_suspect_a_lane_begins_with_a_cancelled_job": "a_lane_waits_since_its_cancelled_id",
    "a_worker_is_taken_back_in_steps": """
        reclaim_child_drops_the_rest reclaim_worker_drops_the_rest signed_on_without_a_trace
        cancel_while_it_runs cancel_asks_nobody
    """,
    "a_worker_is_lost": "repair_overlooks_lost_workers repair_revives_lost_workers",
    "suspects_run_in_groups": """
        groups_do_not_halve the_last_run_is_beside_others the_last_run_comes_too_soon each_asks_for_itself
        innocent_are_guilty
    """,
    "a_token_that_woke_for_another_queue_is_put_back": "claim_keeps_the_token_of_another_queue resume_wakes_nobody",
    "of_those_alike_one_lives": """
        digest_not_held crashed_with_the_digest unique_without_exists_check no_ring_entry_on_give_back
        no_turn_for_a_client an_empty_queue_has_an_oldest crash_not_counted max_crashes_off_by_one
        crash_is_no_failure purge_keeps_cancelled_ids since_is_kept time_runs_backwards
        time_that_was_slow_becomes_fast
    """,
    "the_dead_keep_nobody_out": "buried_with_the_digest",
    "until_it_starts": """
        held_until_done_all_the_same held_until_it_started_once digest_of_another_is_freed
        digest_is_not_freed digests_are_kept forget_overlooks_digests
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
    "the_last_client_counts": "changed_beside_its_client",
    "a_client_waits_for_its_rate": """
        rates_are_ignored burst_is_ignored one_more_start_than_the_rate_allows rounded_starts_are_missing
        next_start_after_the_burst next_start_is_early next_starts_are_not_noted next_starts_wake_no_scheduler
        past_times_stay each_claim_starts_one starts_of_clients_not_written a_place_is_a_start
        clients_wait_without_a_time due_clients_stay_blocked promote_lets_nobody_go_on
        promote_forgets_who_is_next rates_outlast_limits
    """,
    "part_of_a_start_is_none": """
        default_burst_is_one part_of_a_start_is_one slow_rates_wait_longer fast_rates_wait_beyond_their_burst
        next_starts_wake_at_every_turn promote_forgets_the_next_job
    """,
    "a_rate_and_a_cap_stop_a_client": """
        default_burst_may_be_none starts_are_given_back_by_all who_waits_for_a_place_waits_for_its_rate
        after_a_place_no_time_is_noted
    """,
    "a_rate_changes_while_a_client_waits": """
        a_lower_rate_holds_on a_lower_rate_is_cut_again_and_again who_went_on_is_due
    """,
    "a_queue_waits_for_its_rate": """
        fast_rates_wake_for_each_start starts_of_the_queue_not_written starts_are_not_given_back
        queue_without_rate queue_waits_without_a_time who_was_due_stays_due a_due_queue_wakes_nobody
    """,
    "due_starts_of_a_queue_without_room_or_work": """
        a_due_queue_without_work_wakes_workers claims_of_no_room_let_clients_go_on
    """,
    "busy_workers_need_no_scheduler": """
        claims_let_nobody_go_on claims_overlook_a_new_band
    """,
    "a_queue_is_full": """
        one_more_of_a_queue_waits what_runs_waits one_job_ignores_limits many_jobs_ignore_limits
        clients_of_a_call_have_one_place a_refused_job_is_stored limits_of_waiting_outlast_their_end
    """,
    "what_is_dead_or_runs_does_not_wait": """
        the_dead_wait
    """,
    "a_client_is_full": """
        delayed_do_not_wait one_more_of_a_client_waits jobs_of_a_call_have_one_place
        own_limit_of_waiting_ignored no_default_of_waiting
    """,
    "a_blocked_client_is_full": """
        blocked_do_not_wait a_band_counts_twice a_pause_may_limit_waiting
    """,
    "a_job_is_sent_twice_to_a_full_queue": """
        a_known_job_is_refused
    """,
    "all_or_none": """
        some_of_all_or_none none_said_to_be_stored
    """,
    "people_cancel_all_of_a_client": """
        skipped_too_many trimmed_ids_stay_noted an_empty_lane_stays_indexed
        cancelled_without_an_outcome cancelled_is_purged cancelled_and_still_scheduled skipped_too_many_of_a_lane
    """,
    "people_cancel_what_a_client_had_at_a_moment": """
        a_later_job_is_cancelled an_id_without_a_time_is_later later_jobs_leave_the_lane looked_at_again_and_again
        soonest_first those_behind_are_not_noted trimmed_in_the_middle each_band_is_started_later one_band_only
        started_with_the_first_band
    """,
    "unique_jobs_of_a_full_queue": """
        unique_jobs_ignore_limits duplicates_are_refused a_second_run_needs_no_place
        each_second_run_needs_a_place a_second_before_the_first_needs_a_place
    """,
    "all_or_none_of_unique_jobs": """
        some_unique_of_all_or_none preview_overlooks_ids preview_overlooks_digests
        preview_overlooks_owners preview_overlooks_known_ids
    """,
    "heavy_clients_start_more_often": """
        weights_are_not_noted weights_are_noted_twice weights_outlast_their_end light_is_heavy
        newcomers_without_a_mark newcomers_are_not_placed newcomers_come_first newcomers_one_too_far
        newcomers_without_stride turns_without_weights turns_do_not_move_on turns_of_the_same_stride
        turns_of_a_ring_of_one who_has_gone_takes_turns turns_move_on_once turns_in_the_order_of_reading
        heap_takes_the_first_child turns_are_lost a_lane_is_read_once
    """,
    "strides_follow_the_default": "weights_without_default weights_without_a_weight_of_the_default",
    "weights_come_when_clients_wait": "newcomers_begin_at_zero newcomers_are_pulled_back",
    "heavy_clients_have_limits_too": "blocked_are_newcomers",
    "of_equal_turns_names_decide": "ties_end_as_they_come",
    "others_come_before_the_second_job_of_the_last": "a_batch_goes_beyond_what_it_has_read",
    "nobody_waits_for_an_old_turn": "old_turns_stay",
    "two_light_clients_become_heavy": "old_turns_stay_when_weights_end only_one_is_pulled_back",
    "a_cancelled_job_costs_no_turn": "cancelled_jobs_of_the_heavy_cost_turns",
    "long_jobs_come_less_often": """
        starts_are_not_charged starts_are_not_counted one_start_is_counted the_average_is_the_last
        the_average_of_all_stays workers_are_not_believed ended_jobs_run starts_of_ended_jobs_stay
        newcomers_of_time_are_not_placed newcomers_of_time_come_first newcomers_of_time_without_weight
        newcomers_of_time_come_together who_has_nothing_left_owes_nothing steps_without_estimate
        times_move_on_by_clients ends_are_not_charged unrun_jobs_make_the_average what_was_charged_stays
        ends_without_weight other_rings_stay used_times_stay reclaimed_jobs_have_run
        times_outlast_their_end times_are_not_counted_again counted_again_from_zero
        who_is_gone_stays_counted
    """,
    "a_claim_charges_no_more_than_a_second": """
        estimates_without_end
    """,
    "running_jobs_count": """
        running_jobs_are_not_charged running_jobs_are_not_looked_at one_look_is_enough
        late_charges_are_forgotten debts_without_waiting_jobs
    """,
    "what_the_worker_says_is_not_all": """
        workers_are_believed reclaimed_jobs_get_the_first_turn times_are_noted_for_others
        by_time_without_marks
    """,
    "it_begins_and_ends": """
        jobs_count_since_their_claim all_was_used_since old_runs_are_charged_to_newcomers
        old_turns_are_times weights_leave_debts the_last_word_on_times_wins who_is_new_is_not_counted
    """,
    "running_jobs_of_heavy_clients_count": """
        late_charges_without_weight
    """,
    "who_is_blocked_keeps_its_turn": """
        the_blocked_come_back_level the_blocked_lose_their_turn the_blocked_owe_nothing
        the_turn_of_the_blocked_stays an_empty_ring_begins_at_zero
    """,
    "what_did_not_run_costs_nothing": """
        unrun_jobs_are_charged released_jobs_get_the_first_turn
    """,
    "a_task_is_paused": """
        a_pause_begins_anew a_pause_holds_nothing a_paused_task_pauses_the_queue jobs_behind_others_are_held
        held_since_now held_and_in_the_lane the_held_are_missing_in_the_index nobody_looks_at_the_held
        no_scheduler_goes_on the_oldest_come_back_first they_come_back_behind_others back_and_held
        they_waited_for_the_resume who_comes_back_gets_no_turn a_pause_is_never_forgotten
    """,
    "the_scheduler_gives_the_rest_back": """
        a_pause_takes_another_number two_pauses_have_one_number promote_forgets_the_held
        promote_does_not_go_on promote_resumes each_pause_gives_back_a_whole_call the_resumed_do_not_run_now
    """,
    "held_jobs_are_cancelled_and_purged": "a_resumed_task_holds_jobs the_held_run_now",
    "jobs_come_back_in_their_order": """
        jobs_further_behind_are_given the_held_still_wait resumed_and_paused
        their_lanes_are_as_young_as_before a_pause_is_forgotten_too_early
    """,
    "a_client_at_its_limit_waits_since_its_next_job": "a_lane_stays_as_old_as_the_held",
    "what_fails_and_crashes_is_held": "the_held_are_due_in_a_thousand_years",
}
