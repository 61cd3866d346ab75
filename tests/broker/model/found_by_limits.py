"""Which of the scenarios about limits, rates and waiting jobs finds which mutants: see found_by.py."""

from __future__ import annotations

LIMITS_FOUND_BY = {
    "a_full_client_wakes_nobody": "full_clients_wake_workers one_of_several_is_full",
    "a_full_client_waits_in_a_lower_band": "lower_bands_wake_nobody",
    "a_full_queue_wakes_nobody": """
        full_queues_wake_workers a_rate_of_the_queue_wakes_nobody old_values_stay new_limits_wake_nobody
    """,
    "a_function_lets_a_full_client_go_on": """
        new_answers_wake_nobody one_more_than_the_limit clients_have_no_limit_of_their_own ends_not_counted
        counts_of_none_stay ends_in_reclaim_not_counted
    """,
    "a_function_says_limits": """
        a_function_has_no_say the_settings_win the_function_wins a_first_limit_of_a_function_counts_nothing
        nobody_goes_on_when_a_function_says_so a_met_client_is_not_noted the_forgotten_are_looked_at_again
        rates_wake_nobody
    """,
    "a_function_is_not_asked_any_more": """
        a_client_that_waits_is_forgotten a_client_that_runs_jobs_is_forgotten limits_of_the_forgotten_stay
        clients_with_jobs_stay_first forgotten_too_early fewer_are_forgotten
    """,
    "all_or_none_make_room": "all_need_their_places_twice all_find_no_places all_must_fit_beside_what_is_queued",
    "the_oldest_make_room": """
        the_newest_is_dropped dropped_without_an_outcome dropped_and_kept drops_are_not_counted
        drops_are_not_told a_place_of_the_queue_is_lost a_cancelled_id_makes_room_in_the_queue
        an_empty_lane_waits who_has_nothing_left_stays_in_the_ring an_empty_band_stays
    """,
    "the_oldest_of_a_client_make_room": """
        another_client_makes_room the_youngest_lane_makes_room the_last_makes_room a_place_of_the_client_is_lost
        a_lane_stays_as_old delayed_jobs_of_a_client_count_for_the_queue the_queue_makes_room_for_a_client
    """,
    "jobs_in_front_do_not_make_room": "jobs_put_in_front_make_room the_wrong_end_is_removed a_lane_gets_younger",
    "who_has_nothing_left_leaves_the_ring": "a_blocked_client_leaves_the_ring",
    "cancelled_jobs_make_room": "cancelled_ids_are_remembered who_is_not_blocked_loses_its_turn",
    "delayed_jobs_are_not_dropped": "jobs_are_dropped_in_vain delayed_jobs_of_others_do_not_count",
    "more_has_to_go_than_one_call_drops": "a_call_drops_without_end a_call_drops_one_less",
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
    "busy_workers_need_no_scheduler": "claims_let_nobody_go_on claims_overlook_a_new_band",
    "cancelled_jobs_do_not_wait": """
        cancelled_jobs_fill_a_client cancelled_jobs_of_others_make_room cancelled_ids_stay_in_front
        trimmed_ids_are_remembered a_lane_waits_since_its_trimmed_job who_cancels_all_stays_in_the_ring
    """,
    "a_queue_is_full": """
        one_more_of_a_queue_waits what_runs_waits one_job_ignores_limits many_jobs_ignore_limits
        clients_of_a_call_have_one_place a_refused_job_is_stored limits_of_waiting_outlast_their_end
    """,
    "what_is_dead_or_runs_does_not_wait": "the_dead_wait ends_in_retry_not_counted",
    "a_client_is_full": """
        delayed_do_not_wait one_more_of_a_client_waits jobs_of_a_call_have_one_place
        own_limit_of_waiting_ignored no_default_of_waiting
    """,
    "a_blocked_client_is_full": "blocked_do_not_wait a_band_counts_twice a_pause_may_limit_waiting",
    "all_or_none": "some_of_all_or_none none_said_to_be_stored a_known_job_is_refused",
    "unique_jobs_of_a_full_queue": """
        unique_jobs_ignore_limits duplicates_are_refused a_second_run_needs_no_place
        each_second_run_needs_a_place a_second_before_the_first_needs_a_place
    """,
    "all_or_none_of_unique_jobs": """
        some_unique_of_all_or_none preview_overlooks_ids preview_overlooks_digests preview_overlooks_owners
        preview_overlooks_known_ids preview_knows_refused_jobs
    """,
    "the_log_has_lost_that_a_client_is_blocked": "no_turn_beside_an_old_lane",
    "the_log_has_lost_when_a_client_may_start": """
        one_more_in_a_turn clients_have_no_default bands_of_the_blocked_not_noted blocked_take_turns
        blocked_are_looked_at band_of_the_blocked_stays blocked_go_on_without_room blocked_stay_noted
        blocked_go_on_without_band blocked_get_no_turn blocked_go_on_silently starts_not_counted
        jobs_of_clients_not_counted jobs_of_the_queue_not_counted owners_not_written counts_outlast_limits
        limits_outlast_their_end check_forgets audit_adds_to_the_counts audit_lets_nobody_go_on
        audit_puts_bands_of_the_blocked_back
    """,
    "a_blocked_client_makes_room": "paused_clients_start blocked_wake_workers",
    "a_worker_dies_and_gives_its_places_back": "queue_without_limit queue_over_its_limit",
    "a_queue_at_its_limit": "queue_at_its_limit_keeps_others_waiting ends_wake_nobody",
    "a_client_reaches_its_limit_in_the_same_claim": """
        blocked_go_to_the_end blocked_get_turns_back a_place_lets_nobody_go_on
    """,
    "a_rate_of_a_client_without_jobs": "blocked_without_jobs_stay",
    "a_blocked_client_has_nothing_left": "ends_in_finish_not_counted",
    "a_client_at_its_limit_lets_others_pass": "ends_in_bury_not_counted",
    "an_unrun_job_of_a_blocked_client": "ends_in_release_not_counted",
    "what_was_set_at_run_time_wins": "forget_overlooks_limits settings_win other_values_are_lost settings_are_lost",
    "what_runs_already_counts": "first_limit_counts_nothing entries_without_owner_stay",
    "the_log_has_lost_a_count": "audit_counts_nothing audit_notes_no_bands",
}
