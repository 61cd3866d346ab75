"""A call of note_times, and the state before it."""

from typing import Any

from django_rtq.broker.messages import NewJob
from django_rtq.broker.scripts import SCRIPTS
from tests.support.jobs import QUEUE, WORKER, claimed_jobs, new_job


def claimed_by_time(broker: Any) -> list[NewJob]:
    broker.limits.change(QUEUE, {"run:queue": "fair_by=seconds"})
    return claimed_jobs(broker, new_job("a", client="x"), new_job("b", client="x"), new_job("c", client="y"))


def note_times(broker: Any, jobs: list[NewJob]) -> Any:
    noted = [word for job in jobs for word in (job.id, "1.5")]
    return broker.redis.execute_one(SCRIPTS["note_times"].call(broker.keys.of(QUEUE), noted, worker=WORKER))
