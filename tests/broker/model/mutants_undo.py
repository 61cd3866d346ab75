"""Mutants of what sets jobs aside, and puts them back."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

UNDO_MUTANTS = (
    Mutant("dead_letters_are_not_set_aside", "then set_aside(q, undo, gone, places) end", "then end", ("discard",)),
    Mutant("waiting_jobs_are_not_set_aside", "then set_aside(q, undo, ids, ", "then tostring(", ("purge",)),
    Mutant("crashes_are_not_set_aside", "return { q.failures, q.crashes, q.errors", "return { q.failures, q.errors"),
    Mutant("the_retrying_are_scheduled", 'retry[i] and "retrying " or "scheduled "', '"scheduled "'),
    Mutant("large_jobs_are_copied_at_once", "if i > 1 and bytes > COPIED_BYTES", "if false", ("discard", "purge")),
    Mutant("failures_are_not_large", ' + redis.call("HSTRLEN", q.errors, id)', NOTHING, ("discard",)),
    Mutant("all_that_are_dead_are_deleted", 'undo == "" and dead or {', "dead or {", ("discard",)),
    Mutant("large_jobs_are_restored_at_once", "bytes + size > RESTORED_BYTES", "false", ("restore",)),
    Mutant("lists_without_bytes", 'redis.call("HINCRBY", q.undos, token, bytes)', NOTHING),
    Mutant("lists_for_ever", "  keep_for(list, keep_ms)\n", NOTHING, ("discard", "purge")),
    Mutant(
        "empty_lists_are_remembered",
        'if #gone > 0 then redis.call("HDEL", q.undos',
        'if false then redis.call("HDEL", q.undos',
    ),
    Mutant("restored_in_another_place", 'redis.call("ZADD", q.dead, at, id)', 'redis.call("ZADD", q.dead, now, id)'),
    Mutant("restored_twice", 'redis.call("HEXISTS", q.jobs, id) == 1 or is_finished', "is_finished", ("restore",)),
    Mutant(
        "the_finished_are_restored", "== 1 or is_finished(q, id) then return id", "== 1 then return id", ("restore",)
    ),
    Mutant("restored_without_the_rest", "put_beside(q, parts)\n    redis", "redis", ("restore",)),
    Mutant(
        "restored_beside_another",
        "read_digest(q, owner)) == id and due or nil",
        "read_digest(q, owner)) == id and due or due",
    ),
    Mutant("successors_stay_away", "return select(4, read_digest(q, owner)) == id and due or nil", "return nil"),
    Mutant("restored_without_its_digest", "  acquire_unique(q, id, digest, ms)\n  return string", "  return string"),
    Mutant("successors_of_nobody_wait", "and math.min(due, ready) or due", "and due or due"),
    Mutant("the_started_hold_digests", 'or (span == "start" and', "or (false and"),
    Mutant("the_held_stay_in_scheduled", "due >= tonumber(lowest_held())", "false", ("restore",)),
    Mutant("the_held_waited_since_now", "then parts[7] = string", "then parts[6] = string"),
    Mutant("restored_behind_others", "push_front(q, id, record, now)", "push_back(q, id, record, now)", ("restore",)),
    Mutant("restored_without_retrying", 'if state == "retrying" then', "if false then", ("restore",)),
    Mutant(
        "the_first_come_back_first",
        "for _, parts in ipairs(jobs) do",
        "for n = #jobs, 1, -1 do local parts = jobs[n]",
        ("restore",),
    ),
    Mutant("a_call_sent_twice_goes_on", "if last == call then", "if false then", ("restore",)),
    Mutant("every_call_was_sent_before", "if last == call then", "if last then", ("restore",)),
    Mutant("what_is_restored_is_kept", 'redis.call("LTRIM", list, 0, -#jobs * texts - 1)', NOTHING, ("restore",)),
    Mutant("restored_jobs_take_room", 'redis.call("HINCRBY", q.undos, token, -bytes)', NOTHING, ("restore",)),
    Mutant("restored_queues_stay_forgotten", 'redis.call("SADD", prefix .. ":queues", queue)', NOTHING, ("restore",)),
)
