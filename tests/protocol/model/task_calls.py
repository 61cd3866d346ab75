"""States and calls of paused tasks, for script_calls.py."""

from typing import Any

from django_rtq.console.nouns import Place
from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.messages import NewJob
from tests.support.jobs import QUEUE, WORKER, queued_job
from tests.support.single_steps import promote

CHARGE = '{"task":"charge"}'


def pause(broker: Any, jobs: Any = None) -> None:
    Place(readers=Readers(broker)).tasks["charge"].pause(QUEUE, by="eve")


def resume(broker: Any, jobs: Any) -> None:
    Place(readers=Readers(broker)).tasks["charge"].resume(QUEUE)


def paused(broker: Any) -> list[NewJob]:
    """Three in their lanes, and one of another task."""
    broker.sign_on([QUEUE], WORKER)
    pause(broker)
    jobs = [queued_job(broker, name, client="xxy"["abc".index(name)], body=CHARGE) for name in "abc"]
    return [*jobs, queued_job(broker, "d", client="x")]


def held(broker: Any) -> list[NewJob]:
    """Three that are held, one in its lane, and one of another task."""
    jobs = paused(broker)
    assert claim(broker, jobs) == [jobs[3].id]
    return [*jobs, queued_job(broker, "e", client="x", body=CHARGE), queued_job(broker, "f", client="x")]


def resumed(broker: Any) -> list[NewJob]:
    """The same, and somebody has begun to resume the task."""
    jobs, keys = held(broker), broker.keys.of(QUEUE)
    broker.redis.execute_one(("HSET", keys.paused, "task:charge", "100"))
    return jobs


def claim(broker: Any, jobs: Any) -> list[str]:
    return [job_id.decode() for part in broker.claim(WORKER, [QUEUE], 3).claimed for job_id in part.ids]


def promote_all(broker: Any, jobs: Any) -> None:
    promote(broker, QUEUE)
