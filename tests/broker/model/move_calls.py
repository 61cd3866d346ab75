"""States and calls of jobs that are moved to another queue, for script_calls.py and dropping_calls.py."""

from __future__ import annotations

from typing import Any

from django_rtq.broker.messages import NewJob, UniqueJob
from django_rtq.inspector.inspector import Inspector
from tests.support.jobs import (
    QUEUE,
    dead_job,
    entered_job,
    held_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    suspect_job,
)

TARGET = "bulk"


def move(broker: Any, jobs: Any) -> None:
    Inspector(broker).job_mover.move_some(QUEUE, [job.id for job in jobs], TARGET)


def waiting(broker: Any) -> list[NewJob]:
    """One in each state: the last of its lane, the first of it, one that has crashed."""
    jobs = [retrying_job(broker, "a"), dead_job(broker, "b"), suspect_job(broker, "c", client="y")]
    first, last = (queued_job(broker, name, client="x", priority=5) for name in "de")
    return [*jobs, scheduled_job(broker, "f", client="x"), last, first]


def unique(broker: Any) -> list[UniqueJob]:
    """One that holds its digest, and one that held one."""
    dead = held_job(broker, "a", digest="d2")
    settle(broker, "bury", dead)
    return [dead, entered_job(broker, "b")]


def back_again(broker: Any) -> list[NewJob]:
    """Some that were in the other queue, where the lane still names one of them."""
    jobs = [queued_job(broker, name, queue=TARGET) for name in "abc"]
    Inspector(broker).job_mover.move_some(TARGET, [jobs[1].id, jobs[0].id], QUEUE)
    return jobs[:2]
