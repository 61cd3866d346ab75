"""Mutants of paused tasks."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

TASK_MUTANTS = (
    # pausing
    Mutant("a_pause_begins_anew", 'if entry and string.find(entry, " ", 1, true) then return "already" end', NOTHING),
    Mutant("a_pause_takes_another_number", "local number = entry or free_number(q)", "local number = free_number(q)"),
    Mutant(
        "two_pauses_have_one_number",
        'do is_taken[string.match(entries[i], "^%d+")] = true end',
        "do end",
    ),
    # claiming
    Mutant("a_pause_holds_nothing", "  q.pauses = next(numbers) and numbers\n", NOTHING),
    Mutant("a_paused_task_pauses_the_queue", 'is_paused = is_paused or entries[i] == "queue"', "is_paused = true"),
    Mutant(
        "a_resumed_task_holds_jobs", 'string.match(entries[i + 1], "^(%d+) ")', 'string.match(entries[i + 1], "^(%d+)")'
    ),
    Mutant(
        "jobs_further_behind_are_given", "  return q.pauses and is_to_hold(q, id)\n", "  return false\n", ("claim",)
    ),
    Mutant("jobs_behind_others_are_held", "      if not number then break end\n", "      number = number or 100\n"),
    Mutant("held_since_now", "waiting_since(q, found[i], q.now))", "q.now)"),
    Mutant("held_and_in_the_lane", '  redis.call("LTRIM", q.lane .. lane, #ids, -1) -- a torn log', "  -- a torn log"),
    Mutant("the_held_are_missing_in_the_index", '.. ":" .. client, unpack(entries))', '.. ":" .. client, 1, ids[1])'),
    Mutant(
        "nobody_looks_at_the_held",
        '  redis.call("ZADD", q.scheduled_by_client, "LT", lowest, client)\n',
        NOTHING,
    ),
    Mutant("the_held_still_wait", '  redis.call("HDEL", q.waiting_since, unpack(ids))\n', NOTHING, ("claim",)),
    Mutant(
        "a_lane_stays_as_old_as_the_held",
        '  if first then redis.call("ZADD", q.lanes, waiting_since(q, first, q.now), lane) end\nend\n\n-- Hold',
        "end\n\n-- Hold",
    ),
    # resuming
    Mutant("resumed_and_paused", "if is_paused then redis.call", "if false then redis.call", ("resume_task",)),
    Mutant("no_scheduler_goes_on", 'redis.call("ZADD", q.due_signal, "0", "due")', NOTHING, ("resume_task",)),
    Mutant(
        "the_oldest_come_back_first",
        '"ZREVRANGEBYSCORE", q.scheduled, top, bottom',
        '"ZRANGEBYSCORE", q.scheduled, bottom, top',
    ),
    Mutant(
        "they_come_back_behind_others",
        '      redis.call("LPUSH", q.lane .. band',
        '      redis.call("RPUSH", q.lane .. band',
    ),
    Mutant("back_and_held", "    unschedule(q, client, { ids[i] })\n", NOTHING),
    Mutant("they_waited_for_the_resume", '      redis.call("HSET", q.waiting_since, ids[i], since)\n', NOTHING),
    Mutant(
        "their_lanes_are_as_young_as_before",
        '      redis.call("ZADD", q.lanes, since, band .. ":" .. client)\n',
        NOTHING,
    ),
    Mutant("who_comes_back_gets_no_turn", "      index_lane(q, band, client, since)\n", NOTHING),
    Mutant("a_pause_is_never_forgotten", '  if #ids < limit then redis.call("HDEL", q.paused, field) end\n', NOTHING),
    Mutant(
        "a_pause_is_forgotten_too_early", '  if #ids < limit then redis.call("HDEL"', '  if true then redis.call("HDEL"'
    ),
    Mutant("promote_forgets_the_held", "  goes_on = return_more(q, limit)\n", NOTHING),
    Mutant("promote_does_not_go_on", "if goes_on then answer[1] = 0 end", NOTHING),
    Mutant(
        "promote_resumes",
        'local is_over = entries[i] ~= "queue" and not',
        'local is_over = entries[i] ~= "queue" or not',
    ),
    Mutant(
        "each_pause_gives_back_a_whole_call",
        "left = left - return_held(q, entries[i], left)",
        "return_held(q, entries[i], left)",
    ),
    Mutant("the_held_are_due_in_a_thousand_years", '"(" .. lowest_held()', '"+inf"'),
    # by hand
    Mutant(
        "the_held_run_now",
        'if tonumber(due) >= tonumber(lowest_held()) and pause_of(q, record) ~= "" then return "paused" end',
        NOTHING,
    ),
    Mutant(
        "the_resumed_do_not_run_now", ' and pause_of(q, record) ~= "" then return "paused"', ' then return "paused"'
    ),
    # cancelling the jobs of a client
    *(
        Mutant(name, old, new, ("cancel_client_jobs",))
        for name, old, new in (
            ("a_later_job_is_cancelled", "<= until_ms then", "<= 1e15 then"),
            ("an_id_without_a_time_is_later", "16) or 0) <=", "16) or 1e15) <="),
            ("later_jobs_leave_the_lane", "    if record then break end\n", NOTHING),
            ("looked_at_again_and_again", "skip + #ids - #cancelled", "skip + 0"),
            ("skipped_too_many", "skip + #ids - #cancelled", "skip + #ids"),
            ("skipped_too_many_of_a_lane", "start + #ids - trimmed", "start + #ids"),
            ("trimmed_in_the_middle", "tonumber(start) == 0 and trim_front", "trim_front"),
            ("each_band_is_started_later", "i == first and skip or 0", "skip"),
            ("started_with_the_first_band", "if band == place then first = i end", NOTHING),
            ("soonest_first", "ZREVRANGE", "ZRANGE"),
            ("those_behind_are_not_noted", "if lane then", "if false then"),
            ("trimmed_ids_stay_noted", 'redis.call("HDEL", q.cancelled_in_lane, unpack(passed))', NOTHING),
            ("an_empty_lane_stays_indexed", 'redis.call("ZREM", q.lanes, lane)', NOTHING),
            ("cancelled_without_an_outcome", "  store_outcomes(q, list, places, most, now)\n", NOTHING),
            ("cancelled_is_purged", '"cancelled", #cancelled', '"purged", #cancelled'),
            ("cancelled_and_still_scheduled", "if #cancelled > 0 then unschedule", "if false then unschedule"),
            (
                "one_band_only",
                "for i = math.max(first, 1), #bands do",
                "for i = math.max(first, 1), math.max(first, 1) do",
            ),
        )
    ),
)
