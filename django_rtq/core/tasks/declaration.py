"""Whether a function can be a task that workers find, by where and when it is declared; its names, how it is shown."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from django.apps import apps

from django_rtq.core.conf.config import get_config, is_debug, is_under_test, task_modules
from django_rtq.core.tasks.calls import path_of, signature_of
from django_rtq.exceptions import InvalidTask

if TYPE_CHECKING:
    from django_rtq.core.schedules import Schedule

logger = logging.getLogger("django_rtq")

_NAME = re.compile(r"[\w.:-]{1,200}")  # names are parts of JSON, URLs and lines that scripts split at spaces
_SHOWN = ("__module__", "__name__", "__qualname__", "__doc__")


class Schedules(tuple["Schedule", ...]):
    """The option `schedule` of a task."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """A task of huey has a method of this name."""
        raise TypeError("`schedule` is the option of a task. To run a job later, use using(run_after=…).delay(…).")


def schedules_option(owner: str, value: Any) -> Schedules:
    """The schedules of a task. Raises InvalidTask."""
    if value == ():
        return Schedules()
    from django_rtq.core.schedules import named_schedules  # few tasks have one

    return Schedules(named_schedules(owner, value))


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
    return InvalidTask(
        f"{path_of(value) if inspect.isfunction(value) else repr(value)} cannot be a task: {why}. {cure}"
    )


def name_option(func: Callable[..., Any], value: Any) -> str:
    """The name of a task: the given one, or that of the function. Raises InvalidTask."""
    return _checked_name(path_of(func), "name", value) if value else path_of(func)


def aliases_option(owner: str, func: Callable[..., Any], value: Any) -> tuple[str, ...]:
    """Other names by which workers find the task: those given, and that of its function. Raises InvalidTask."""
    if not isinstance(value, list | tuple):
        raise InvalidTask(f'{owner}: aliases is {value!r}, but has to be a list of names, like ["shop.tasks.old"].')
    names = [_checked_name(owner, "aliases", name) for name in value]
    return tuple(name for name in dict.fromkeys([*names, path_of(func)]) if name != owner)


def _checked_name(owner: str, option: str, value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidTask(
            f"{owner}: {option} has {value!r}, but the name of a task is 1 to 200 letters, digits, '.', '_', ':' "
            "and '-'."
        )
    return value


def shown_attributes(func: Callable[..., Any], *, takes_context: bool) -> Mapping[str, Any]:
    """The attributes by which help(), editors and Sphinx describe a task like its function."""
    attributes: dict[str, Any] = {name: getattr(func, name) for name in _SHOWN}
    attributes["__wrapped__"] = func
    if takes_context:
        parameters = signature_of(func, takes_context=True).parameters
        attributes["__signature__"] = inspect.signature(func).replace(parameters=parameters)
    return attributes


# -- when it is declared: workers import nothing later than Django's start, except for the modules of installed apps

_late: set[str] = set()  # tasks that were declared after Django had started
_warned: set[str] = set()  # names of tasks


def note_declared(name: str) -> None:
    """Remember whether the task is declared after Django has started: workers may not know it."""
    if apps.ready:
        _late.add(name)


def is_in_installed_app(module: str) -> bool:
    """Whether this module belongs to an app in INSTALLED_APPS: then it is imported when a job of it comes."""
    return apps.apps_ready and apps.get_containing_app_config(module) is not None


def warn_if_unknown_to_workers(name: str, module: str) -> None:
    """Log a warning while DEBUG is on, once for each task, if its module was not imported when Django started.

    Also if django_rtq is no app.
    """
    if name not in _late or name in _warned or not is_debug() or is_under_test():
        return
    if not apps.is_installed("django_rtq"):
        _warned.add(name)
        logger.warning(
            'A job of %s was sent, but "django_rtq" is missing in INSTALLED_APPS: tasks are not imported when Django '
            "starts, and manage.py has no command rtq_worker to run them. Add it. This warning comes once for each "
            "task, and only while DEBUG is on.",
            name,
        )
        return
    if is_in_installed_app(module):
        return
    _warned.add(name)
    logger.warning(
        "A job of %s was sent, but workers do not know this task: its module %s is not imported when Django starts. "
        'The job waits for a worker that knows it, and is dead after RTQ["UNKNOWN_TASK_TIMEOUT"], %g s. Move the task '
        'to the module %r of an app, import %s there, or add its name to RTQ["TASK_MODULES"]. This warning comes once '
        "for each task, and only while DEBUG is on.",
        name, module, get_config().unknown_task_timeout, " or ".join(task_modules()), module,
    )  # fmt: skip
