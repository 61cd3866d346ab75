"""What the declaration of a task says of its function: whether it can be a task, its names, and how it is shown."""

from __future__ import annotations

import inspect
import re
import reprlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from django_rtq.exceptions import InvalidTask
from django_rtq.tasks.options.signature import signature_of

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task

_NAME = re.compile(r"[\w.:-]{1,200}")  # names are parts of JSON, URLs and lines that scripts split at spaces
_SHOWN = ("__module__", "__name__", "__qualname__", "__doc__")


def check_function(value: Any) -> None:
    """Raises InvalidTask unless workers can find the function by its name, and run it."""
    if isinstance(value, classmethod | staticmethod):
        raise _refused(value.__func__, "it is declared in a class", _FOR_METHODS)
    if inspect.ismethod(value):
        raise _refused(value, "it is declared in a class", _FOR_METHODS)
    if not inspect.isfunction(value):
        raise _refused(value, "it is no function", "If a decorator wraps a function, it must use functools.wraps.")
    if value.__qualname__.endswith("<lambda>"):
        raise _refused(value, "a lambda has no name by which workers could find it", "Write a function with def.")
    if "<locals>" in value.__qualname__:
        raise _refused(
            value,
            "it is declared inside a function, where workers do not find it",
            "Move it to the top level of its module, and pass what it takes from outside as arguments. If a decorator "
            "wraps a function, it must use functools.wraps.",
        )
    if "." in value.__qualname__:
        raise _refused(value, "it is declared in a class", _FOR_METHODS)
    if inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value):
        raise _refused(value, "it is a generator function, whose body a call does not run", "Return a list instead.")


_FOR_METHODS = (
    "Workers have no object to call it on. Write a function at the top level of the module that gets the primary key, "
    "and calls the method."
)


def _refused(value: Any, why: str, cure: str) -> InvalidTask:
    return InvalidTask(f"{_path(value) if inspect.isfunction(value) else repr(value)} cannot be a task: {why}. {cure}")


def name_option(func: Callable[..., Any], value: Any) -> str:
    """The name of a task: the given one, or that of the function. Raises InvalidTask."""
    return _checked_name(_path(func), "name", value) if value else _path(func)


def aliases_option(owner: str, func: Callable[..., Any], value: Any) -> tuple[str, ...]:
    """Other names by which workers find the task: those given, and that of its function. Raises InvalidTask."""
    if not isinstance(value, list | tuple):
        raise InvalidTask(f'{owner}: aliases is {value!r}, but has to be a list of names, like ["shop.tasks.old"].')
    names = [_checked_name(owner, "aliases", name) for name in value]
    return tuple(name for name in dict.fromkeys([*names, _path(func)]) if name != owner)


def _checked_name(owner: str, option: str, value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidTask(
            f"{owner}: {option} has {value!r}, but the name of a task is 1 to 200 letters, digits, '.', '_', ':' "
            "and '-'."
        )
    return value


def _path(func: Callable[..., Any]) -> str:
    return f"{func.__module__}.{func.__qualname__}"


def shown_attributes(func: Callable[..., Any], *, takes_context: bool) -> Mapping[str, Any]:
    """The attributes by which help(), editors and Sphinx describe a task like its function."""
    found: dict[str, Any] = {name: getattr(func, name) for name in _SHOWN}
    found["__wrapped__"] = func
    if takes_context:
        parameters = signature_of(func, takes_context=True).parameters
        found["__signature__"] = inspect.signature(func).replace(parameters=parameters)
    return found


def task_repr(task: Task[Any, Any]) -> str:
    """The name of a task, and what using() has changed."""
    changes = [f"{name}={reprlib.repr(getattr(task, name))}" for name in sorted(task.changed)]
    return f"<Task {' '.join([task.name, *changes])}>"
