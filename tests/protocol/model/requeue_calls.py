"""Calls that queue dead letters in another queue, or with other arguments, for all_calls.py."""

from __future__ import annotations

from typing import Any

from django_rtq.console.reading.actions import How
from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.messages import NewJob
from tests.support.console_steps import requeue_elsewhere
from tests.support.jobs import QUEUE, claim, dead_job, dead_unique_job, settle, settlement

TARGET = "bulk"


def requeue(broker: Any, jobs: Any) -> None:
    requeue_elsewhere(broker, jobs, TARGET)


def change(broker: Any, jobs: Any) -> None:
    Readers(broker).actions.act("requeue", QUEUE, [jobs[0].id], How(body='{"task":"b"}'))


def unique(broker: Any) -> list[NewJob]:
    return [dead_unique_job(broker)]


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
