"""django-vtasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import django
from django.apps import apps

if not apps.apps_ready:
    django.setup()

from django_vtasks import task

from benchmarks.rivals import bodies


@task
async def noop(number: int) -> None:
    """A coroutine: the way without threads."""
    bodies.noop(number)


@task
async def nap(number: int) -> None:
    """Wait 6 ms."""
    await bodies.nap_async(number)


@task
def read_and_write(number: int) -> None:
    """In a thread."""
    bodies.read_and_write(number)


@task
async def record_start(slot: int) -> None:
    """Record when it started."""
    bodies.record_start(slot)


TASKS = {"noop": noop, "nap": nap, "read_and_write": read_and_write, "record_start": record_start}


def send(task: str, numbers: Iterable[int]) -> list[Any]:
    """enqueue() for each."""
    enqueue = TASKS[task].enqueue
    return [enqueue(number) for number in numbers]
