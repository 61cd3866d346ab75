"""Reads RTQ["MIDDLEWARE"] and nests its middleware around a callable; and middleware for languages.

The form is that of Django (D78).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import MiddlewareNotUsed
from django.utils import timezone, translation
from django.utils.decorators import sync_and_async_middleware
from django.utils.module_loading import import_string

from django_rtq.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django_rtq.core.jobs.job import Job


__all__ = ["LanguageMiddleware"]

Side = Literal["enqueue", "run"]
Factory = Callable[[Callable[..., Any]], Any]  # gets the next callable, and returns one


_FORM = "has to be a function that gets `run` and returns a callable, or a class with the methods `run` and `enqueue`."


@lru_cache(maxsize=8)
def load(paths: Sequence[str]) -> Sequence[tuple[str, Mapping[str, Factory | None]]]:
    """Import the entries of the setting: their paths, and their factories by side. Raises ConfigurationError."""
    return [(path, _load(path)) for path in paths]


def wrap(paths: Sequence[str], side: Side, innermost: Callable[..., Any]) -> Callable[..., Any]:
    """The callable with all middleware around it, the first one outermost. Raises ConfigurationError.

    If the callable is a coroutine function, so is the result.
    """
    wrapped, is_async = innermost, iscoroutinefunction(innermost)
    for path, factories in reversed(load(tuple(paths))):
        if (factory := factories.get(side)) is None:
            continue
        if not getattr(factory, "async_capable" if is_async else "sync_capable", not is_async):
            raise ConfigurationError(_wrong_kind(path, side, is_async=is_async))
        try:
            outer = factory(wrapped)
        except MiddlewareNotUsed:
            continue
        except Exception as error:
            told = f"{_where(path)}: its factory for {side!r} raised {type(error).__name__}: {error}"
            raise ConfigurationError(f"{told}. It {_FORM}") from error
        if not callable(outer):
            raise ConfigurationError(
                f"{_where(path)}: its factory for {side!r} returned {outer!r}, but has to return a callable."
            )
        if is_async and not iscoroutinefunction(outer):
            outer = _marked(outer)
        wrapped = outer
    return wrapped


def check(paths: Sequence[str], *, has_functions: bool, has_coroutines: bool) -> None:
    """Raises ConfigurationError for middleware that is invalid, or cannot be put around the tasks that there are."""
    load(tuple(paths))
    wrap(paths, "enqueue", _nothing)
    if has_functions:
        wrap(paths, "run", _nothing)
    if has_coroutines:
        wrap(paths, "run", _nothing_async)


def can_wrap(paths: Sequence[str], side: Side, *, is_async: bool) -> bool:
    """Whether all middleware can be put around coroutine functions, or around plain ones."""
    kind = "async_capable" if is_async else "sync_capable"
    factories = (factories.get(side) for _, factories in load(tuple(paths)))
    return all(getattr(factory, kind, not is_async) for factory in factories if factory is not None)


def _load(path: str) -> Mapping[str, Factory | None]:
    try:
        entry = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"{_where(path)} cannot be imported: {error}") from error
    except Exception as error:
        raise ConfigurationError(f"{_where(path)} cannot be imported: {type(error).__name__}: {error}") from error
    has_sides = hasattr(entry, "enqueue") or hasattr(entry, "run")
    if hasattr(entry, "delay") or not (has_sides or callable(entry)):  # a task, which would run in each check
        raise ConfigurationError(f"{_where(path)} is {entry!r}, but {_FORM}")
    if not has_sides:
        return {"run": entry}
    if inspect.isclass(entry):
        try:
            entry = entry()
        except MiddlewareNotUsed:
            return {}
        except Exception as error:
            raise ConfigurationError(
                f"{_where(path)} cannot be created without arguments: {type(error).__name__}: {error}"
            ) from error
    return {side: getattr(entry, side, None) for side in ("enqueue", "run")}


def _nothing(argument: Any) -> None: ...


async def _nothing_async(argument: Any) -> None: ...


def _marked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, marked as one that returns a coroutine."""

    def call(argument: Any) -> Any:
        return function(argument)

    return markcoroutinefunction(call)


def _where(path: str) -> str:
    return f'RTQ["MIDDLEWARE"]: {path}'


def _wrong_kind(path: str, side: Side, *, is_async: bool) -> str:
    able, needed = ("functions", "coroutine functions") if is_async else ("coroutine functions", "functions")
    return (
        f"{_where(path)}: its {side!r} can only be put around {able}, but the project has tasks that are {needed}. "
        "Write it for both, and decorate it with django.utils.decorators.sync_and_async_middleware."
    )


class LanguageMiddleware:
    """Headers `language` and `timezone`. A job without them has the language and time zone of the settings."""

    @sync_and_async_middleware
    def enqueue(self, enqueue: Callable[..., Any]) -> Callable[..., Any]:
        """Set the headers, unless the call has them."""

        def set_headers(call: Any) -> Any:
            if language := translation.get_language():
                call.headers.setdefault("language", language)
            call.headers.setdefault("timezone", timezone.get_current_timezone_name())
            return enqueue(call)

        return set_headers

    @sync_and_async_middleware
    def run(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Activate them. Each job has a context of its own, so nothing has to be restored."""

        def activate(job: Job) -> Any:
            if language := job.headers.get("language"):
                translation.activate(str(language))
            if zone := job.headers.get("timezone"):
                _activate_zone(str(zone))
            return run(job)

        return activate


def _activate_zone(name: str) -> None:
    """An offset such as "UTC+02:00" has no name that could be looked up: then the zone stays as it is."""
    try:
        timezone.activate(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        timezone.deactivate()
