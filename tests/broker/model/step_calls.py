"""States and calls of what jobs remember, for script_calls.py."""

from __future__ import annotations

from typing import Any

from django_rtq.broker.job_steps import Holder
from django_rtq.broker.messages import HeldEntry
from tests.support.jobs import QUEUE, WORKER

DONE = '1795205063204 1500 {"id":7}'


def holder(broker: Any, job: Any, worker: str = WORKER) -> Holder:
    """The run that holds a job."""
    held = broker.redis.execute_one(("HGET", broker.keys.of(QUEUE).running(WORKER), job.id)) or b"1 1"
    return Holder(QUEUE, job.id, worker, HeldEntry.read(held).claimed_ms or 0)


def record(broker: Any, jobs: Any) -> None:
    """A run has finished a step."""
    broker.steps.write(holder(broker, jobs[0]), "step charge", DONE)
