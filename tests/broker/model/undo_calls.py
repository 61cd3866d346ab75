"""States and calls of actions that can be undone, for script_calls.py and dropping_calls.py."""

from __future__ import annotations

from typing import Any

from django_rtq.broker.messages import NewJob
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.inspector import Inspector
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    dead_job,
    held_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    unique_job,
)

TOKEN = "discard-" + "0" * 32


def dead(broker: Any) -> list[NewJob]:
    """Dead letters with all that lies beside some."""
    jobs = [dead_job(broker, "a", client="x"), claimed_job(broker, "b", max_crashes=0), held_job(broker, "c")]
    broker.reclaim_child(QUEUE, WORKER, [jobs[1].id])
    settle(broker, "bury", jobs[2])
    return jobs


def discard(broker: Any, jobs: Any) -> None:
    Inspector(broker).discard(QUEUE, [job.id for job in jobs], undo=TOKEN)


def discarded(broker: Any) -> list[NewJob]:
    jobs = dead(broker)
    discard(broker, jobs)
    return jobs


def close(broker: Any, jobs: Any) -> None:
    Inspector(broker).undos.close(QUEUE, TOKEN)


def restore(broker: Any, jobs: Any) -> None:
    """Sent twice, it is the same call."""
    call = SCRIPTS["restore"].call(broker.keys.of(QUEUE), (TOKEN, "call", 60_000, 2, 60_000))
    broker.redis.execute_one(call, resend=True)


def waiting(broker: Any) -> list[NewJob]:
    """Jobs that wait in all ways."""
    jobs = [retrying_job(broker, "a", client="x"), scheduled_job(broker, "b", client="y")]
    jobs += [queued_job(broker, name, client="x") for name in "cd"]
    broker.enqueue_unique(QUEUE, [unique_job("e", client="x")])
    return jobs


def purge(broker: Any, jobs: Any) -> None:
    while Inspector(broker).purge(QUEUE, undo=TOKEN):
        pass


def purged(broker: Any) -> list[NewJob]:
    jobs = waiting(broker)
    purge(broker, jobs)
    return jobs


def restore_all(broker: Any, jobs: Any) -> None:
    call = SCRIPTS["restore"].call(broker.keys.of(QUEUE), (TOKEN, "call", 60_000, 100, 60_000))
    broker.redis.execute_one(call, resend=True)
