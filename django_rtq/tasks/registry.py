"""Names to tasks. Only what was registered here by @task ever runs (G11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_rtq.exceptions import InvalidTask, TaskNotFound
from django_rtq.validation import did_you_mean

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task

_tasks: dict[str, Task[Any, Any]] = {}


def register(task: Task[Any, Any]) -> None:
    """Make a task known. A module that is loaded again replaces its tasks."""
    _tasks[task.name] = task


def get_task(name: str) -> Task[Any, Any]:
    """The task of that name. Raises TaskNotFound."""
    try:
        return _tasks[name]
    except KeyError:
        hint = did_you_mean(name, _tasks)
        raise TaskNotFound(
            f"No task {name!r} is registered here.{hint} Its module may be missing, or newer than this process."
        ) from None


def get_public_task(name: str) -> Task[Any, Any]:
    """The task of that name, for a job that a person makes or changes. Raises TaskNotFound, and InvalidTask if it is
    internal.
    """
    task = get_task(name)
    if task.internal:
        raise InvalidTask(f"{name} is internal to django_rtq: it cannot be enqueued by hand, edited or scheduled.")
    return task


def is_internal(name: str) -> bool:
    """Whether people are refused to make and change jobs of this task."""
    return name in _tasks and _tasks[name].internal


def all_tasks() -> dict[str, Task[Any, Any]]:
    """Every registered task, by name."""
    return dict(sorted(_tasks.items()))
