"""Tasks whose functions get many calls at once: what fits such a task."""

from __future__ import annotations

import inspect
from typing import Any

from django_rtq.core.tasks.task import Task
from django_rtq.exceptions import InvalidTask


def check_batch(task: Task[Any, Any]) -> None:
    """Raises InvalidTask for options and functions that make no sense together."""
    if inspect.iscoroutinefunction(task.func):
        raise InvalidTask(
            f"{task.name}: a task with batch runs in a thread, so it cannot be a coroutine function. Write `def` "
            "instead of `async def`, and await in it with async_to_sync()."
        )
    if task.exactly_once:
        raise InvalidTask(
            f"{task.name}: exactly_once commits the id of one job together with what it writes, and a batch has many "
            "jobs. Leave out batch or exactly_once."
        )
    if task.takes_context:
        raise InvalidTask(
            f"{task.name}: takes_context is of one job, and a batch has many. Each call has its id, attempt, client "
            "and headers instead."
        )
    try:
        inspect.signature(task.func).bind([])
    except TypeError:
        raise InvalidTask(
            f"{task.name}: a task with batch gets one argument, the list of its calls: def "
            f"{task.func.__name__}(calls: Sequence[Call])."
        ) from None
