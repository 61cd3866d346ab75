"""Registered tasks by name. Only tasks that @task registered here can run (G11)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.apps import apps

from django_rtq.broker.task_backends import is_in, place_of, queues_in, viewed_backend
from django_rtq.conf.config import get_config
from django_rtq.exceptions import InvalidTask, TaskNotFound
from django_rtq.validation import did_you_mean

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task

_tasks: dict[str, Task[Any, Any]] = {}
_OURS = "django_rtq.internal_tasks"  # imported when a job of it comes
_aliases: dict[str, str] = {}  # other name -> name
_late: set[str] = set()  # tasks that were registered after Django had started
_finders: list[Callable[[str], Task[Any, Any] | None]] = []


def register(task: Task[Any, Any]) -> None:
    """Register a task. A module that is reloaded replaces its tasks. Raises InvalidTask if a name is taken."""
    for name in (task.name, *task.aliases):
        known = find_task(name)
        if known is not None and _origin(known) != _origin(task):
            raise InvalidTask(
                f"{name!r} is the name of two tasks: {_origin(known)} and {_origin(task)}. Change `name` or `aliases`."
            )
    replaced = find_task(_origin(task))  # each task is found by the name of its function
    if replaced is not None:
        del _tasks[replaced.name]
        for alias in replaced.aliases:
            _aliases.pop(alias, None)
    _tasks[task.name] = task
    _aliases.update(dict.fromkeys(task.aliases, task.name))
    if apps.ready:
        _late.add(task.name)


def _origin(task: Task[Any, Any]) -> str:
    """The function of a task, as a path."""
    return f"{task.func.__module__}.{task.func.__qualname__}"


def get_task(name: str) -> Task[Any, Any]:
    """The task with this name or alias. Raises TaskNotFound."""
    found = known_task(name)
    if found is None:
        hint = did_you_mean(name, _tasks)
        raise TaskNotFound(
            f"No task {name!r} is registered here.{hint} Its module may be missing, or newer than this process."
        )
    return found


def known_task(name: str) -> Task[Any, Any] | None:
    """The task with this name or alias. None if there is none: cheaper than get_task(), which makes a hint then."""
    return find_task(name) or _find(name)


def find_task(name: str) -> Task[Any, Any] | None:
    """The task with this name or alias, if it is registered."""
    return _tasks.get(name) or _tasks.get(_aliases.get(name, ""))


#: The same without aliases: a dictionary's own method, for workers.
find_registered = _tasks.get


def is_late(name: str) -> bool:
    """Whether the task was registered after Django had started: workers may not know it."""
    return name in _late


def has_finders() -> bool:
    """Whether workers import the modules of unknown tasks."""
    return bool(_finders)


def add_finder(finder: Callable[[str], Task[Any, Any] | None]) -> None:
    """Add a function that is asked for a task that is not registered. It registers and returns it, or returns None."""
    _finders.append(finder)


def _find(name: str) -> Task[Any, Any] | None:
    module, _, attribute = name.rpartition(".")
    if module == _OURS and (found := vars(import_module(_OURS)).get(attribute)) and hasattr(found, "internal"):
        register(found)
        return _tasks[name]
    return next(filter(None, (finder(name) for finder in _finders)), None)


def get_public_task(name: str) -> Task[Any, Any]:
    """The task with this name, unless it is internal. Raises TaskNotFound and InvalidTask."""
    task = get_task(name)
    if task.internal:
        raise InvalidTask(f"{name} is internal to django_rtq: it cannot be enqueued by hand, edited or scheduled.")
    return task


def is_internal(name: str) -> bool:
    """Whether operators cannot enqueue, edit and schedule jobs of this task."""
    return name in _tasks and _tasks[name].internal


def all_tasks() -> dict[str, Task[Any, Any]]:
    """Every registered task, by name."""
    return dict(sorted(_tasks.items()))


def declared_queues(backend: str | None = None) -> list[str]:
    """The queues that tasks and settings name, sorted: those that workers are expected to serve.

    The default queue is one of them if a task uses it, or if no other is named. Those in the Redis of a backend in
    TASKS; "": in RTQ["REDIS"]; None: in the one that is viewed. Raises ConfigurationError.
    """
    place, config = place_of(viewed_backend() if backend is None else backend), get_config()
    of_tasks = {task.queue for task in _tasks.values() if not task.internal and is_in(task.backend, place)}
    named = of_tasks | queues_in(place) | (set() if place else set(config.queues))
    return sorted(named or ([] if place else [config.default_queue]))
