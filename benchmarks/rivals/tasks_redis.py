"""django-tasks-redis."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import django
from django.apps import apps

if not apps.apps_ready:
    django.setup()

from django.tasks import task

from benchmarks.rivals import bodies

POLL_SECONDS = 0.001


@task
def noop(number: int) -> None:
    """Only mark that it is done."""
    bodies.noop(number)


@task
def nap(number: int) -> None:
    """Wait 6 ms."""
    bodies.nap(number)


@task
def read_and_write(number: int) -> None:
    """One SELECT and one UPDATE."""
    bodies.read_and_write(number)


@task
def record_start(slot: int) -> None:
    """Record when it started."""
    bodies.record_start(slot)


@task
def add_one(number: int) -> int:
    """Return a result that somebody waits for."""
    return bodies.add_one(number)


TASKS = {
    "noop": noop,
    "nap": nap,
    "read_and_write": read_and_write,
    "record_start": record_start,
    "add_one": add_one,
}


def send(task: str, numbers: Iterable[int]) -> list[Any]:
    """enqueue() for each."""
    enqueue = TASKS[task].enqueue
    return [enqueue(number) for number in numbers]


def get(handle: Any) -> Any:
    """No call waits for a result: ask again and again."""
    while not handle.is_finished:
        time.sleep(POLL_SECONDS)
        handle.refresh()
    return handle.return_value
