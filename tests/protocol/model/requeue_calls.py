"""Calls that queue dead letters in another queue, or with other arguments, for script_calls.py."""

from typing import Any

from django_rtq.console.reading.actions import How
from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.messages import NewJob
from tests.support.console_steps import requeue_elsewhere
from tests.support.jobs import QUEUE, claim, claimed_jobs, dead_job, dead_unique_job, new_job, settle, settlement

TARGET = "bulk"


def requeue(broker: Any, jobs: Any) -> None:
    requeue_elsewhere(broker, jobs, TARGET)


def change(broker: Any, jobs: Any) -> None:
    Readers(broker).actions.act("requeue", QUEUE, [jobs[0].id], How(body='{"task":"b"}'))


def unique(broker: Any) -> list[NewJob]:
    return [dead_unique_job(broker)]


def expired(broker: Any) -> list[NewJob]:
    """Two of a task that nobody knew: no failure is counted, and by now they have expired."""
    jobs = claimed_jobs(broker, *(new_job(name, expires="1") for name in "ab"))
    settle(broker, "bury", *jobs, counted=0)
    return jobs


def back_again(broker: Any) -> list[NewJob]:
    """One that was in the other queue, and has died since."""
    job = dead_job(broker, "a")
    requeue_elsewhere(broker, [job], TARGET)
    claim(broker, queues=[TARGET])
    broker.settle("w2", TARGET, settlement("bury", job))
    requeue_elsewhere(broker, [job], QUEUE, queue=TARGET)
    claim(broker)
    settle(broker, "bury", job, worker="w2")
    return [job]
