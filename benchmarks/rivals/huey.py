"""huey."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from huey import RedisHuey, chord

from benchmarks.rivals import bodies

huey = RedisHuey("bench", url=bodies.URL, notify_result=True)
TASKS = {
    "noop": huey.task()(bodies.noop),
    "nap": huey.task()(bodies.nap),
    "fail_once": huey.task(retries=3, retry_delay=0)(bodies.fail_once),
    "read_and_write": huey.task()(bodies.read_and_write),
    "record_start": huey.task()(bodies.record_start),
    "add_one": huey.task()(bodies.add_one),
    "call_back": huey.task()(bodies.call_back),
}


def send(task: str, numbers: Iterable[int]) -> list[Any]:
    """A call for each."""
    call = TASKS[task]
    return [call(number) for number in numbers]


def group(task: str, numbers: Iterable[int]) -> None:
    """A chord."""
    huey.enqueue(chord([TASKS[task].s(number) for number in numbers], TASKS["call_back"].s()))


def get(handle: Any) -> Any:
    """Wait for the result, without polling."""
    return handle.get(blocking=True, timeout=60)
