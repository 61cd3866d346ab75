"""Registered tasks by name. Only tasks that @task registered here can run (G11)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django_rtq.core.broker.task_backends import is_in, place_of, queues_in, shard_of
from django_rtq.core.conf.config import get_config, task_modules
from django_rtq.core.extension import parts
from django_rtq.core.tasks.declaration import is_in_installed_app, note_declared
from django_rtq.core.validation import did_you_mean
from django_rtq.exceptions import InvalidTask, TaskNotFound

if TYPE_CHECKING:
    from django_rtq.core.tasks.task import Task

_tasks: dict[str, Task[Any, Any]] = {}
ALIASES: dict[str, str] = {}  # other name -> name of the registered task
#: Tasks whose functions get many calls, by name and other names: how many.
batch_tasks: dict[str, int] = {}
INTERNAL = "django_rtq.internal_tasks"  # what the names of our own tasks begin with: found when a job of one comes
_broken: dict[str, str] = {}  # module that could not be imported for a task -> its error
#: Are called with what the name of an unknown task leads to, and may register it as a task.
adopters: list[Callable[[Any], None]] = []


def register(task: Task[Any, Any]) -> None:
    """Register a task. A module that is reloaded replaces its tasks. Raises InvalidTask if a name is taken."""
    for name in (task.name, *task.aliases):
        known = find_task(name)
        if known is not None and known._path != task._path:
            raise InvalidTask(
                f"{name!r} is the name of two tasks: {known._path} and {task._path}. Change `name` or `aliases`."
            )
    replaced = find_task(task._path)  # each task is found by the name of its function
    if replaced is not None:
        del _tasks[replaced.name]
        for alias in replaced.aliases:
            ALIASES.pop(alias, None)
    _tasks[task.name] = task
    ALIASES.update(dict.fromkeys(task.aliases, task.name))
    for name in (task.name, *task.aliases):
        batch_tasks.pop(name, None)
        if task.batch is not None:
            batch_tasks[name] = task.batch
    note_declared(task.name)


def get_task(name: str) -> Task[Any, Any]:
    """The task with this name or alias. Raises TaskNotFound."""
    task = known_task(name)
    if task is None:
        module = name.rpartition(".")[0]
        cause = f" Its module cannot be imported: {_broken[module]}." if module in _broken else ""
        raise TaskNotFound(
            f"No task {name!r} is registered here.{cause or did_you_mean(name, _tasks)} Workers import the modules "
            f"{' and '.join(map(repr, task_modules()))} of installed apps, and a task's own module if it belongs to an "
            'installed app. Add others to RTQ["TASK_MODULES"]. Or this process runs older code.'
        )
    return task


def known_task(name: str) -> Task[Any, Any] | None:
    """The task with this name or alias. None if there is none: cheaper than get_task(), which makes a hint then."""
    return find_task(name) or _find(name)


def find_task(name: str) -> Task[Any, Any] | None:
    """The task with this name or alias, if it is registered."""
    return _tasks.get(name) or _tasks.get(ALIASES.get(name, ""))


#: The same without aliases: a dictionary's own method, for workers.
find_registered = _tasks.get


def names_of(task: str) -> list[str]:
    """The names that jobs of a task may have, its own first."""
    return [task, *other_names(lambda name: name == task)]


def other_names(is_meant: Callable[[str], bool]) -> list[str]:
    """The other names of the registered tasks whose names are meant."""
    return [alias for alias, name in ALIASES.items() if is_meant(name)]


def _find(name: str) -> Task[Any, Any] | None:
    """Import the module of a task, if it belongs to an installed app: so apps may declare tasks in any module."""
    module, _, attribute = name.rpartition(".")
    if module == INTERNAL:
        for task in parts("internal_task"):
            register(task)
        return find_task(name)
    if not is_in_installed_app(module):
        return None
    try:
        task = getattr(import_module(module), attribute, None)
    except Exception as error:  # noqa: BLE001 - whatever a module of the project raises
        if not (isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}.")):
            _broken[module] = f"{type(error).__name__}: {error}"
        return None
    _broken.pop(module, None)
    for adopt in adopters:
        adopt(task)
    return find_task(name)


def get_public_task(name: str) -> Task[Any, Any]:
    """The task with this name, unless it is internal. Raises TaskNotFound and InvalidTask."""
    task = get_task(name)
    if task.internal:
        raise InvalidTask(f"{name} is internal to django_rtq: it cannot be enqueued by hand, edited or scheduled.")
    return task


def is_internal(name: str) -> bool:
    """Whether operators cannot enqueue, edit and schedule jobs of this task."""
    return name.rpartition(".")[0] == INTERNAL or (name in _tasks and _tasks[name].internal)


def all_tasks() -> dict[str, Task[Any, Any]]:
    """Every registered task, by name."""
    return dict(sorted(_tasks.items()))


def declared_queues(backend: str = "") -> list[str]:
    """The queues that tasks and settings name, sorted: those that workers are expected to serve.

    The default queue is one of them if a task uses it, or if no other is named. Those in the Redis of a backend in
    TASKS; "": in RTQ["REDIS"]. Raises ConfigurationError.
    """
    place, config = place_of(backend), get_config()
    if shard_of(place) is not None:
        place = ""  # all shards have all queues
    of_tasks = {task.queue for task in _tasks.values() if not task.internal and is_in(task.backend, place)}
    of_settings = set() if place else {*config.queues, *filter(None, [config.email.get("queue_name")])}
    named = of_tasks | queues_in(place) | of_settings
    return sorted(named or ([] if place else [config.default_queue]))
