"""Mutants of moving jobs to another queue."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

MOVE_MUTANTS = (
    # who may move
    Mutant("what_runs_is_moved", 'if find_runner(q, id) then return "running" end', NOTHING, ("move",)),
    Mutant("who_was_moved_is_missing", '  if redis.call("HEXISTS", target.jobs, id) == 1 or', "  if", ("move",)),
    Mutant(
        "who_ended_there_is_missing",
        '  if redis.call("HEXISTS", target.jobs, id) == 1 or has_ended(target, id)',
        '  if redis.call("HEXISTS", target.jobs, id) == 1',
        ("move",),
    ),
    Mutant("successors_leave", "if waits and", "if false and", ("move",)),
    Mutant("successors_are_left", "if job.is_owner and is_successor", "if false and is_successor", ("move",)),
    Mutant("moved_beside_one_like_it", "if other and other ~= id", "if false", ("move",)),
    Mutant("the_dead_enter_beside_one_like_them", "(job.is_owner or (digest and job.is_dead))", "job.is_owner"),
    # where they go
    Mutant("the_held_stay_held", "local is_held = score and", "local is_held = false and", ("move",)),
    Mutant("the_held_waited_for_the_move", "or is_held and held_since(score) or", "or is_held and now or", ("move",)),
    Mutant("they_waited_for_the_move", "or waiting_since(q, id, now),\n", "or now,\n", ("move",)),
    Mutant("moved_ahead", '"^(%-?%d+)%+?( %d+)( %d+ %d+ )"', '"^(%-?%d+%+?)( %d+)( %d+ %d+ )"', ("move",)),
    Mutant("the_dead_expire_there", 'string.format(" %.0f 0 ", now) or "%3"', '"%3" or "%3"', ("move",)),
    Mutant("moved_and_not_retrying", "if job.due and job.is_retrying", "if false", ("move",)),
    Mutant("the_dead_keep_their_counts", "local value = (i < 3 or not job.is_dead) and", "local value =", ("move",)),
    Mutant("counts_stay_behind", "(i < 3 or not job.is_dead)", "i < 3", ("move",)),
    Mutant("errors_stay_behind", "(i < 3 or not job.is_dead)", "i > 1", ("move",)),
    Mutant(
        "moved_without_its_digest",
        "if job.is_owner or (job.digest and job.is_dead) then acquire",
        "if false then acquire",
        ("move",),
    ),
    Mutant(
        "the_dead_enter_without_their_digest",
        "if job.is_owner or (job.digest and job.is_dead) then acquire",
        "if job.is_owner then acquire",
        ("move",),
    ),
    Mutant("moved_without_its_note", "if job.note then", "if false then", ("move",)),
    Mutant(
        "lines_stay_behind", 'if redis.call("EXISTS", q.log .. id) == 1 then redis', "if false then redis", ("move",)
    ),
    Mutant("moved_to_no_queue", '  redis.call("SADD", prefix .. ":queues", name)\n', NOTHING, ("move",)),
    Mutant("moved_again", "if not is_there then", "if true then", ("move",)),
    # what they leave
    Mutant("moved_and_unknown", '  redis.call("SADD", q.finished, id)\n', NOTHING, ("move",)),
    Mutant("moved_from_the_middle", "if lane and not is_first then", "if false then", ("move",)),
    Mutant("moved_and_first", '    redis.call("LPOP", q.lane .. lane)\n', NOTHING, ("move",)),
    Mutant(
        "the_next_waits_as_long",
        '    redis.call("LPOP", q.lane .. lane)\n    update_lane(q, lane, now)\n',
        '    redis.call("LPOP", q.lane .. lane)\n',
        ("move",),
    ),
    Mutant("moved_and_scheduled", "if job.is_scheduled then unschedule", "if false then unschedule", ("move",)),
    Mutant("moved_and_dead", 'if job.is_dead then redis.call("ZREM"', 'if false then redis.call("ZREM"', ("move",)),
    Mutant("moves_are_not_counted", 'count(q.stats, now, "moved", 1)', NOTHING, ("move",)),
    # when they come back
    Mutant("back_and_finished", '  redis.call("SREM", q.finished, id)\n', NOTHING, ("move",)),
    Mutant("back_later_and_finished", '  redis.call("SREM", q.finished_before, id)\n', NOTHING, ("move",)),
    Mutant("back_twice", '    redis.call("LREM", q.lane .. lane, 1, id)\n', NOTHING, ("move",)),
    Mutant(
        "back_and_cancelled", '    redis.call("HDEL", q.cancelled_in_lane, id)\n    update', "    update", ("move",)
    ),
    Mutant(
        "the_lane_behind_waits_as_long",
        "    update_lane(q, lane, now)\n  end\nend\n\n-- The record",
        "  end\nend\n\n-- The record",
        ("move",),
    ),
)
