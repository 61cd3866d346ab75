"""django_rtq."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import django
from django.apps import apps

if not apps.apps_ready:  # the producer; a worker imports this module while Django starts
    django.setup()

from benchmarks.rivals import bodies
from django_rtq import task, workflow

TASKS = {
    "noop": task(result_ttl=0)(bodies.noop),
    "nap": task(result_ttl=0)(bodies.nap),
    "fail_once": task(result_ttl=0, backoff=0)(bodies.fail_once),
    "read_and_write": task(result_ttl=0)(bodies.read_and_write),
    "record_start": task(result_ttl=0)(bodies.record_start),
    "add_one": task(bodies.add_one),
    "call_back": task(result_ttl=0)(bodies.call_back),
}


def send(task: str, numbers: Iterable[int]) -> list[Any]:
    """delay() for each."""
    delay = TASKS[task].delay
    return [delay(number) for number in numbers]


def fill(task: str, numbers: Iterable[int]) -> None:
    """delay_many()."""
    TASKS[task].delay_many([((number,), {}) for number in numbers])


def group(task: str, numbers: Iterable[int]) -> None:
    """A workflow."""
    with workflow("group") as flow:
        flow.after(flow.map(TASKS[task], numbers)).add(TASKS["call_back"])


def get(handle: Any) -> Any:
    """JobHandle.get()."""
    return handle.get(timeout=60)
