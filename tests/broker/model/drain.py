"""From wherever the queues are, to their end: every job reaches it, and nothing is left behind."""

from __future__ import annotations

from tests.broker.model.keyspace import FIXED, read_keyspace
from tests.broker.model.parallel_run import QUEUES, RESULT_MS, Twins

LAST_MS = 60_000  # longer than any job waits for its time
ROUNDS = 500


def drain(twins: Twins) -> None:
    """Everything is worked off."""
    for queue in QUEUES:
        twins.resume(queue)
        for worker in list(twins.models[queue].workers):
            twins.reclaim_child(queue, worker, [])
    twins.advance(LAST_MS)
    twins.sign_on("last")
    promote_all(twins)
    work_off(twins)
    while any(model.scheduled for model in twins.models.values()):  # those who waited for the end of others
        promote_all(twins)
        work_off(twins)
    for queue in QUEUES:
        twins.discard(queue, list(twins.models[queue].dead))
    twins.sign_off("last")
    twins.advance(RESULT_MS)
    for queue in QUEUES:
        while twins.models[queue].finished:
            twins.trim(queue)
    left = {key for key in read_keyspace(twins.redis) if not is_fixed(key)}
    assert left == {"rtq:queues"}, left


def promote_all(twins: Twins) -> None:
    """Whatever is due is queued."""
    for queue in QUEUES:
        while any(due <= twins.clock.now for due in twins.models[queue].scheduled.values()):
            twins.promote(queue)


def work_off(twins: Twins) -> None:
    """One worker does what there is to claim."""
    twins.claim("last", QUEUES, 5)
    for _ in range(ROUNDS):
        twins.fetch("last", {queue: {"ack": held_by(twins, queue)} for queue in QUEUES}, QUEUES, wanted=5)
        if not any(model.bands or model.running["last"] for model in twins.models.values()):
            return
    raise AssertionError("there is work, and nobody gets it")


def held_by(twins: Twins, queue: str) -> list[tuple[str, int, str]]:
    """What the last worker holds, as settled."""
    return [(job_id, RESULT_MS, "") for job_id in twins.models[queue].running["last"]]


def is_fixed(key: str) -> bool:
    """Whether a key may stay when there is no job."""
    name = key.rpartition("}:")[2]
    return name in FIXED or name.startswith(("stats:", "tasks:"))
