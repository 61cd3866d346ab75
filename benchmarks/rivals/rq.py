"""RQ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redis import Redis
from rq import Queue, Retry

from benchmarks.rivals import bodies

queue = Queue(connection=Redis.from_url(bodies.URL), serializer="rq.serializers.JSONSerializer")
OPTIONS: dict[str, dict[str, Any]] = {"fail_once": {"retry": Retry(max=3)}, "add_one": {"result_ttl": 500}}


def send(task: str, numbers: Iterable[int]) -> list[Any]:
    """enqueue() for each."""
    function, options = getattr(bodies, task), {"result_ttl": 0, **OPTIONS.get(task, {})}
    return [queue.enqueue(function, number, **options) for number in numbers]


def fill(task: str, numbers: Iterable[int]) -> None:
    """enqueue_many()."""
    function, options = getattr(bodies, task), {"result_ttl": 0, **OPTIONS.get(task, {})}
    queue.enqueue_many([Queue.prepare_data(function, (number,), **options) for number in numbers])


def group(task: str, numbers: Iterable[int]) -> None:
    """A job that depends on the others, which are kept until it starts."""
    calls = [Queue.prepare_data(getattr(bodies, task), (number,), result_ttl=500) for number in numbers]
    queue.enqueue(bodies.call_back, depends_on=queue.enqueue_many(calls), result_ttl=0)


def get(handle: Any) -> Any:
    """Wait for the result, without polling."""
    return handle.latest_result(timeout=60).return_value
