"""Calls of note_times and add_metrics, and the state before them."""

from typing import Any

from django_rtq.core.broker.messages import NewJob
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.settlement import Settlement
from tests.support.jobs import QUEUE, WORKER, claimed_jobs, new_job


def claimed_by_time(broker: Any) -> list[NewJob]:
    broker.limits.change(QUEUE, {"run:queue": "fair_by=seconds"})
    return claimed_jobs(broker, new_job("a", client="x"), new_job("b", client="x"), new_job("c", client="y"))


def note_times(broker: Any, jobs: list[NewJob]) -> Any:
    noted = [word for job in jobs for word in (job.id, "1.5")]
    return broker.redis.execute_one(SCRIPTS["note_times"].call(broker.keys.of(QUEUE), noted, worker=WORKER))


def tally(broker: Any, jobs: Any) -> None:
    """Add the metrics of two runs."""
    broker.settle(WORKER, QUEUE, Settlement(metrics=[(13, 7, 2, "done task", 3, "r-3 task", 3, "x", 3, 4_000_000)]))
