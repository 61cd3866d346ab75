"""dramatiq."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits.backends import RedisBackend as Barriers
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benchmarks.rivals import bodies

broker = RedisBroker(url=bodies.URL)
broker.add_middleware(Results(backend=RedisBackend(url=bodies.URL)))
broker.add_middleware(GroupCallbacks(Barriers(url=bodies.URL)))
dramatiq.set_broker(broker)
TASKS = {
    "noop": dramatiq.actor(bodies.noop),
    "nap": dramatiq.actor(bodies.nap),
    "fail_once": dramatiq.actor(bodies.fail_once, max_retries=3, min_backoff=1),
    "read_and_write": dramatiq.actor(bodies.read_and_write),
    "record_start": dramatiq.actor(bodies.record_start),
    "add_one": dramatiq.actor(bodies.add_one, store_results=True),
    "call_back": dramatiq.actor(bodies.call_back),
}


def send(task: str, numbers: Iterable[int]) -> list[Any]:
    """send() for each."""
    call = TASKS[task].send
    return [call(number) for number in numbers]


def group(task: str, numbers: Iterable[int]) -> None:
    """A group with a completion callback."""
    members = dramatiq.group([TASKS[task].message(number) for number in numbers])
    members.add_completion_callback(TASKS["call_back"].message())
    members.run()


def get(handle: Any) -> Any:
    """Message.get_result()."""
    return handle.get_result(block=True, timeout=60_000)
