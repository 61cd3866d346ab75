"""Tasks whose functions get many calls at once: what fits such a task, and what its function returns and raises."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from django_rtq.core.tasks.task import Task
from django_rtq.exceptions import BatchFailed, Bury, InvalidTask


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


def results_of(task: Task[Any, Any], returned: Any, calls: int) -> Sequence[Any]:
    """The result of each call. Raises Bury for what is no list of them: another run would return the same."""
    if returned is None:
        return [None] * calls
    if not isinstance(returned, list | tuple) or len(returned) != calls:
        found = f"a list of {len(returned)}" if isinstance(returned, list | tuple) else f"a {type(returned).__name__}"
        raise Bury(
            f"{task.name} got {calls} calls and returned {found}. It has to return None, or a list with one result for "
            "each call, in their order."
        )
    return returned


def errors_of(task: Task[Any, Any], failed: BatchFailed, calls: int) -> dict[int, BaseException]:
    """The errors of single calls. Raises Bury for one of a call that is not there."""
    if unknown := [number for number in failed.errors if number >= calls]:
        raise Bury(
            f"{task.name} raised BatchFailed for call {unknown[0]}, but it got {calls} calls, from 0 on."
        ) from failed
    return failed.errors
