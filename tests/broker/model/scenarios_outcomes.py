"""Scenarios: what is kept of finished jobs."""

from __future__ import annotations

from tests.broker.model.parallel_run import RESULT_MS, ParallelRun
from tests.broker.model.scenarios import DONE, KEEP_MS, run, send

TOMBSTONE_MS = 120_000


def outcomes_are_kept_for_their_time(parallel: ParallelRun) -> None:
    """Each for another time; what was sent again is known for two minutes."""
    ids = send(parallel, *"abcd")
    parallel.claim("w0", ("mail",), 4)
    for job_id, keep_ms in zip(ids, (1000, TOMBSTONE_MS, TOMBSTONE_MS + 1, RESULT_MS), strict=True):
        run(parallel, "ack", [job_id], keep_ms, DONE)
    for ms in (1000, TOMBSTONE_MS - 1000, 1, 1, RESULT_MS - TOMBSTONE_MS - 2, 1):
        parallel.advance(ms)
        for job_id in ids:
            parallel.find("mail", job_id)
        parallel.trim("mail")


def outcomes_are_too_many(parallel: ParallelRun) -> None:
    """Some of those that go finished long ago, others lately."""
    old = send(parallel, *"ab")
    parallel.claim("w0", ("mail",), 2)
    run(parallel, "ack", old, RESULT_MS, DONE)
    parallel.advance(TOMBSTONE_MS + 1)
    parallel.trim("mail")
    for name in "cdef":
        parallel.advance(1)
        send(parallel, name)
        parallel.claim("w0", ("mail",))
        (job_id,) = parallel.models["mail"].running["w0"]
        run(parallel, "ack", [job_id], KEEP_MS, DONE)
    ids = send(parallel, *"ghijk")
    parallel.claim("w0", ("mail",), 5)
    parallel.advance(1)
    run(parallel, "ack", ids, RESULT_MS, DONE)
    parallel.advance(TOMBSTONE_MS - 1)
    parallel.trim("mail")
    (job_id,) = send(parallel, "last")
    parallel.claim("w0", ("mail",))
    run(parallel, "ack", [job_id], RESULT_MS, DONE)


def outcomes_are_looked_at_step_by_step(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcd")
    bare = send(parallel, *"efg")
    parallel.claim("w0", ("mail",), 7)
    run(parallel, "ack", ids[:2], RESULT_MS, DONE)
    run(parallel, "ack", ids[2:], 1000, DONE)
    run(parallel, "ack", bare, TOMBSTONE_MS, "")
    parallel.advance(TOMBSTONE_MS + 1)
    for _ in range(4):
        parallel.trim("mail", 1)


def an_outcome_cannot_be_read(parallel: ParallelRun) -> None:
    ids = send(parallel, *"ab")
    parallel.claim("w0", ("mail",), 2)
    run(parallel, "ack", ids, RESULT_MS, DONE)
    for job_id in ids:
        parallel.models["mail"].results[job_id] = f"x{RESULT_MS} {{}}"
        parallel.redis.hset(parallel.broker.keys.of("mail").results, job_id, f"x{RESULT_MS} {{}}")
    parallel.advance(TOMBSTONE_MS + 1)
    parallel.trim("mail")


OUTCOME_SCENARIOS = (
    outcomes_are_kept_for_their_time,
    outcomes_are_too_many,
    outcomes_are_looked_at_step_by_step,
    an_outcome_cannot_be_read,
)
