"""States and calls of jobs that are handed over to another shard, for script_calls.py and dropping_calls.py. Here it is
another queue of the same server."""

from __future__ import annotations

from typing import Any

from django_rtq.broker.scripts import SCRIPTS
from tests.broker.model import move_calls
from tests.support.jobs import QUEUE, enqueue_unique, finished_job, held_job, settle, unique_job

TARGET = "bulk"
CALL = "call"  # the name of the drain


def call(broker: Any, queue: str, script: str, *arguments: Any) -> Any:
    """The reply of a script."""
    return broker.redis.execute_one(SCRIPTS[script].call(broker.keys.of(queue), arguments), resend=True)


def begin(broker: Any, name: str = CALL) -> None:
    """Begin a drain."""
    keys = broker.keys
    broker.redis.execute_one(("HSET", keys.of(QUEUE).carried, "", name), resend=True)
    broker.redis.execute_one(("HSET", keys.of(TARGET).arrivals, "from 1", name), resend=True)


def pack(broker: Any, job_id: str) -> Any:
    return call(broker, QUEUE, "pack_job", job_id)


def receive(broker: Any, job_id: str, *, name: str = CALL, packed: Any = None) -> str:
    _, texts, steps, lines, log_ms = packed or pack(broker, job_id)
    arguments = (job_id, 1, name, log_ms, len(texts), len(steps), *texts, *steps, *lines)
    return str(call(broker, TARGET, "receive_job", *arguments).decode())


def hand_over(broker: Any, job_id: str, stamp: bytes | None = None, *, name: str = CALL) -> str:
    stamp = pack(broker, job_id)[0] if stamp is None else stamp
    return str(call(broker, QUEUE, "hand_over", job_id, name, 0, stamp).decode())


def admit(broker: Any, job_id: str, *, name: str = "") -> str:
    return str(call(broker, TARGET, "admit_job", job_id, 1, name).decode())


def carry(broker: Any, job_id: str) -> None:
    """All steps."""
    packed = pack(broker, job_id)
    assert receive(broker, job_id, packed=packed) == "held"
    assert hand_over(broker, job_id, packed[0]) == "handed"
    assert admit(broker, job_id) == "admitted"


def go_on(broker: Any, job_id: str) -> None:
    """What the next drain does with a job, wherever it is."""
    packed = pack(broker, job_id)
    if packed[0]:
        receive(broker, job_id, packed=packed)
        hand_over(broker, job_id, packed[0])
    admit(broker, job_id)


def found(broker: Any, jobs: Any) -> list[set[str]]:
    """Those of these jobs that are in the one shard, and in the other."""
    ids = {job_id for job_id, _ in jobs}
    keys = [broker.keys.of(queue) for queue in (QUEUE, TARGET)]
    replies = [broker.redis.execute([("HKEYS", key) for key in (each.jobs, each.results)]) for each in keys]
    return [ids & {job_id.decode() for job_id in (*live, *over)} for live, over in replies]


# -- states


def waiting(broker: Any) -> list[tuple[str, bytes]]:
    """A job in each state and the stamp of each."""
    begin(broker)
    jobs = [finished_job(broker, "g"), *move_calls.waiting(broker)]
    return [(job.id, pack(broker, job.id)[0]) for job in jobs]


def held(broker: Any) -> list[tuple[str, bytes]]:
    """The same, on hold in the other shard."""
    jobs = waiting(broker)
    receive_all(broker, jobs)
    return jobs


def handed_over(broker: Any) -> list[tuple[str, bytes]]:
    """The same, with a note where they went."""
    jobs = held(broker)
    hand_over_all(broker, jobs)
    return jobs


def unique(broker: Any) -> list[tuple[str, bytes]]:
    """One that holds its key, one that holds it when it is requeued, and one whose key another job has there."""
    begin(broker)
    dead = held_job(broker, "a", digest="d2")
    settle(broker, "bury", dead)
    enqueue_unique(broker, unique_job("b"), unique_job("c", digest="d3"))
    broker.enqueue_unique(TARGET, [unique_job("d", digest="d3")])
    jobs = [dead.id, *(job_id for job_id in _ids(broker) if job_id != dead.id)]
    return [(job_id, pack(broker, job_id)[0]) for job_id in jobs]


def _ids(broker: Any) -> list[str]:
    return sorted(job_id.decode() for job_id in broker.redis.execute_one(("HKEYS", broker.keys.of(QUEUE).jobs)))


def unique_held(broker: Any) -> list[tuple[str, bytes]]:
    jobs = unique(broker)
    receive_all(broker, jobs)
    return jobs


def unique_handed_over(broker: Any) -> list[tuple[str, bytes]]:
    jobs = unique_held(broker)
    hand_over_all(broker, jobs)
    return jobs


# -- calls, each for all jobs


def pack_all(broker: Any, jobs: Any) -> None:
    for job_id, _ in jobs:
        pack(broker, job_id)


def receive_all(broker: Any, jobs: Any) -> None:
    for job_id, _ in jobs:
        receive(broker, job_id)


def hand_over_all(broker: Any, jobs: Any) -> None:
    for job_id, stamp in jobs:
        hand_over(broker, job_id, stamp)


def admit_all(broker: Any, jobs: Any) -> None:
    for job_id, _ in jobs:
        admit(broker, job_id)
