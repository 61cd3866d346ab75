"""Celery."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from celery import Celery, chord

from benchmarks.rivals import bodies

app = Celery("bench", broker=bodies.URL, backend=bodies.URL)
app.conf.update(
    task_serializer="json",
    result_serializer="json",
    accept_content=["json"],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)
TASKS = {
    "noop": app.task(bodies.noop),
    "nap": app.task(bodies.nap),
    "fail_once": app.task(bodies.fail_once, autoretry_for=(ValueError,), default_retry_delay=0, max_retries=3),
    "read_and_write": app.task(bodies.read_and_write),
    "record_start": app.task(bodies.record_start),
    "add_one": app.task(bodies.add_one, ignore_result=False),
    "call_back": app.task(bodies.call_back),
}
MEMBERS = {  # of a chord: their results are needed
    name: app.task(getattr(bodies, name), name=f"member.{name}", ignore_result=False) for name in ("noop", "nap")
}


def send(task: str, numbers: Iterable[int]) -> list[Any]:
    """delay() for each."""
    delay = TASKS[task].delay
    return [delay(number) for number in numbers]


def group(task: str, numbers: Iterable[int]) -> None:
    """A chord."""
    chord(MEMBERS[task].si(number) for number in numbers)(TASKS["call_back"].si())


def get(handle: Any) -> Any:
    """AsyncResult.get()."""
    return handle.get(timeout=60)
