"""Stories of what is kept of jobs that are over."""

from __future__ import annotations

from tests.broker.model.parallel_run import RESULT_MS, Twins
from tests.broker.model.scenarios import DONE, KEEP_MS, run, send

TOMBSTONE_MS = 120_000


def outcomes_are_kept_for_their_time(twins: Twins) -> None:
    """Each for another time; what was sent again is known for two minutes."""
    ids = send(twins, *"abcd")
    twins.claim("w0", ("mail",), 4)
    for job_id, keep_ms in zip(ids, (1000, TOMBSTONE_MS, TOMBSTONE_MS + 1, RESULT_MS), strict=True):
        run(twins, "ack", [job_id], keep_ms, DONE)
    for ms in (1000, TOMBSTONE_MS - 1000, 1, 1, RESULT_MS - TOMBSTONE_MS - 2, 1):
        twins.advance(ms)
        for job_id in ids:
            twins.find("mail", job_id)
        twins.trim("mail")


def outcomes_are_too_many(twins: Twins) -> None:
    """Some of those that go finished long ago, others lately."""
    old = send(twins, *"ab")
    twins.claim("w0", ("mail",), 2)
    run(twins, "ack", old, RESULT_MS, DONE)
    twins.advance(TOMBSTONE_MS + 1)
    twins.trim("mail")
    for name in "cdef":
        twins.advance(1)
        send(twins, name)
        twins.claim("w0", ("mail",))
        (job_id,) = twins.models["mail"].running["w0"]
        run(twins, "ack", [job_id], KEEP_MS, DONE)
    ids = send(twins, *"ghijk")
    twins.claim("w0", ("mail",), 5)
    twins.advance(1)
    run(twins, "ack", ids, RESULT_MS, DONE)
    twins.advance(TOMBSTONE_MS - 1)
    twins.trim("mail")
    (job_id,) = send(twins, "last")
    twins.claim("w0", ("mail",))
    run(twins, "ack", [job_id], RESULT_MS, DONE)


def outcomes_are_looked_at_step_by_step(twins: Twins) -> None:
    ids = send(twins, *"abcd")
    bare = send(twins, *"efg")
    twins.claim("w0", ("mail",), 7)
    run(twins, "ack", ids[:2], RESULT_MS, DONE)
    run(twins, "ack", ids[2:], 1000, DONE)
    run(twins, "ack", bare, TOMBSTONE_MS, "")
    twins.advance(TOMBSTONE_MS + 1)
    for _ in range(4):
        twins.trim("mail", 1)


def an_outcome_cannot_be_read(twins: Twins) -> None:
    ids = send(twins, *"ab")
    twins.claim("w0", ("mail",), 2)
    run(twins, "ack", ids, RESULT_MS, DONE)
    for job_id in ids:
        twins.models["mail"].results[job_id] = f"x{RESULT_MS} {{}}"
        twins.redis.hset(twins.broker.keys.of("mail").results, job_id, f"x{RESULT_MS} {{}}")
    twins.advance(TOMBSTONE_MS + 1)
    twins.trim("mail")


OUTCOME_STORIES = (
    outcomes_are_kept_for_their_time,
    outcomes_are_too_many,
    outcomes_are_looked_at_step_by_step,
    an_outcome_cannot_be_read,
)
