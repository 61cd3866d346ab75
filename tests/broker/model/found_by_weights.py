"""Which of the scenarios about turns, weights and times finds which mutants: see found_by.py."""

from __future__ import annotations

WEIGHTS_FOUND_BY = {
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
    "heavy_clients_start_more_often": """
        weights_are_not_noted weights_are_noted_twice weights_outlast_their_end light_is_heavy
        newcomers_without_a_mark newcomers_are_not_placed newcomers_come_first newcomers_one_too_far
        newcomers_without_stride turns_without_weights turns_do_not_move_on turns_of_the_same_stride
        turns_of_a_ring_of_one who_has_gone_takes_turns turns_move_on_once turns_in_the_order_of_reading
        heap_takes_the_first_child turns_are_lost a_lane_is_read_once
    """,
    "strides_follow_the_default": "weights_without_default weights_without_a_weight_of_the_default",
    "weights_come_when_clients_wait": "newcomers_begin_at_zero",
    "heavy_clients_have_limits_too": "blocked_are_newcomers",
    "of_equal_turns_names_decide": "ties_end_as_they_come",
    "others_come_before_the_second_job_of_the_last": "a_batch_goes_beyond_what_it_has_read",
    "nobody_waits_for_an_old_turn": "old_turns_stay newcomers_are_pulled_back",
    "two_light_clients_become_heavy": "old_turns_stay_when_weights_end only_one_is_pulled_back turns_are_put_off",
    "a_cancelled_job_costs_no_turn": "cancelled_jobs_of_the_heavy_cost_turns",
    "long_jobs_come_less_often": """
        starts_are_not_charged starts_are_not_counted one_start_is_counted the_average_is_the_last
        the_average_of_all_stays workers_are_not_believed ended_jobs_run starts_of_ended_jobs_stay
        newcomers_of_time_are_not_placed newcomers_of_time_come_first newcomers_of_time_without_weight
        newcomers_of_time_come_together who_has_nothing_left_owes_nothing steps_without_estimate
        times_move_on_by_clients ends_are_not_charged unrun_jobs_make_the_average what_was_charged_stays
        ends_without_weight other_rings_stay used_times_stay reclaimed_jobs_have_run times_outlast_their_end
        times_are_not_counted_again counted_again_from_zero who_is_gone_stays_counted
    """,
    "a_claim_charges_no_more_than_a_second": "estimates_without_end all_come_anew_at_each_weight",
    "running_jobs_count": """
        running_jobs_are_not_charged running_jobs_are_not_looked_at one_look_is_enough
        late_charges_are_forgotten debts_without_waiting_jobs
    """,
    "what_the_worker_says_is_not_all": """
        workers_are_believed reclaimed_jobs_get_the_first_turn times_are_noted_for_others by_time_without_marks
    """,
    "it_begins_and_ends": """
        jobs_count_since_their_claim all_was_used_since old_runs_are_charged_to_newcomers old_turns_are_times
        weights_leave_debts the_last_word_on_times_wins who_is_new_is_not_counted old_numbers_are_turns
    """,
    "running_jobs_of_heavy_clients_count": "late_charges_without_weight",
    "who_is_blocked_keeps_its_turn": """
        the_blocked_come_back_level the_blocked_lose_their_turn the_blocked_owe_nothing
        the_turn_of_the_blocked_stays an_empty_ring_begins_at_zero
    """,
    "a_debt_has_an_end": "debts_have_no_end",
    "what_did_not_run_costs_nothing": "unrun_jobs_are_charged released_jobs_get_the_first_turn",
    "a_claim_settles": "claim_without_ownership_check",
    "a_worker_is_known_in_one_of_two_queues": "unknown_worker_hears_nothing unknown_worker_loses_jobs",
    "a_claim_goes_through_several_queues": "claim_overlooks_a_queue claim_goes_on_with_lower_queues",
}
