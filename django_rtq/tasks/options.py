"""The options of a task: checked when the task is declared, and turned into what the broker takes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from django.utils import timezone as django_timezone

from django_rtq.broker.keys import check_queue_name
from django_rtq.conf import uses_time_zones
from django_rtq.exceptions import InvalidTask
from django_rtq.tasks.backoff import Backoff, as_backoff

Moment = float | timedelta | datetime

LONGEST_SECONDS = 10 * 365 * 86_400.0  # ten years: more is a mistake of units
LONGEST_CLIENT = 200


def check_function(value: Any) -> None:
    """Raises InvalidTask for what workers could not find by its name, or not run."""
    name = f"{value.__module__}.{value.__qualname__}" if inspect.isfunction(value) else repr(value)
    if not inspect.isfunction(value) or "<" in name:
        raise InvalidTask(
            f"{name} cannot be a task: it has to be a function at the top level of its module. "
            "What a decorator made of one needs functools.wraps."
        )
    if inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value):
        raise InvalidTask(f"{name} cannot be a task: it is a generator, and a worker would not run any of it.")


def queue_name(owner: str, value: Any) -> str:
    """The name of a queue, or "" for that of the settings. Raises InvalidTask."""
    if value is None or value == "":
        return ""
    try:
        check_queue_name(value)
    except InvalidTask as error:
        raise InvalidTask(f"{owner}: {error}") from None
    return str.__str__(value)  # not that of an Enum, which may give the name of its member


def priority_number(owner: str, value: Any) -> int:
    """A whole number from -100 to 100. Raises InvalidTask."""
    if not _is_whole(value) or not -100 <= value <= 100:
        raise InvalidTask(f"{owner}: priority is {value!r}, but has to be a whole number from -100 to 100.")
    return int(value)  # an IntEnum is none that Redis' clients can write


def count_number(owner: str, name: str, value: Any, *, least: int) -> int | None:
    """None, or a whole number, `least` or more. Raises InvalidTask."""
    if value is None:
        return None
    if not _is_whole(value) or value < least:
        raise InvalidTask(f"{owner}: {name} is {value!r}, but has to be a whole number, {least} or more.")
    return int(value)


def check_flag(owner: str, name: str, value: Any) -> None:
    """Raises InvalidTask unless it is True or False."""
    if not isinstance(value, bool):
        raise InvalidTask(f"{owner}: {name} is {value!r}, but has to be True or False.")


def check_seconds(owner: str, name: str, value: Any, *, may_be_zero: bool) -> None:
    """Raises InvalidTask unless it is None or a number of seconds."""
    if value is None:
        return
    if not _is_finite(value) or value < 0 or (value == 0 and not may_be_zero) or value > LONGEST_SECONDS:
        least = "0" if may_be_zero else "more than 0"
        raise InvalidTask(f"{owner}: {name} is {value!r}, but has to be seconds, {least} to ten years.")


def check_errors(owner: str, name: str, value: Any) -> tuple[type[BaseException], ...]:
    """One exception class or several, as a tuple. Raises InvalidTask."""
    classes = value if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(c, type) and issubclass(c, BaseException) for c in classes):
        raise InvalidTask(f"{owner}: {name} is {value!r}, but has to be an exception class, or a tuple of them.")
    return tuple(classes)


def moment_argument(owner: str, name: str, value: Moment | None) -> str:
    """A delay or a moment as scripts take it: "+ms" from now, "ms" since 1970, "" for None. Raises InvalidTask."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return str(_milliseconds(owner, name, value))
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not _is_finite(seconds) or seconds > LONGEST_SECONDS:
        raise InvalidTask(
            f"{owner}: {name} is {value!r}, but has to be a timedelta of at most ten years, or an aware datetime."
        )
    return f"+{round(max(0, seconds) * 1000)}"


def backoff_option(owner: str, value: Any) -> Backoff:
    """A backoff, or what stands for one. Raises InvalidTask."""
    try:
        return as_backoff(value)
    except InvalidTask as error:
        raise InvalidTask(f"{owner}: {error}") from error


def client_option(owner: str, value: Any) -> ClientOption:
    """The name of a client, or the function that tells it. Raises InvalidTask."""
    if not callable(value):
        return client_name(owner, value)
    if inspect.iscoroutinefunction(value):
        raise InvalidTask(f"{owner}: client is async, but is called without waiting for it.")
    function: Callable[..., Any] = value
    return function


def client_name(owner: str, value: Any) -> str:
    """The name of a client: text, or a number or UUID as text. Raises InvalidTask."""
    if _is_whole(value) or isinstance(value, UUID):
        value = str(int(value)) if isinstance(value, int) else str(value)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidTask(f"{owner}: client is {value!r}, but has to be text, a whole number or a UUID.")
    if len(value) > LONGEST_CLIENT or not value.isprintable():
        raise InvalidTask(
            f"{owner}: client is {value[:50]!r}…, but has to be at most {LONGEST_CLIENT} printable characters."
        )
    return str.__str__(value)


def _milliseconds(owner: str, name: str, value: datetime) -> int:
    if django_timezone.is_naive(value):
        if uses_time_zones():
            raise InvalidTask(
                f"{owner}: {name} is {value!r}, a datetime without a time zone, but USE_TZ is on. "
                "Use django.utils.timezone.now() and the like."
            )
        value = django_timezone.make_aware(value)
    try:
        whole = -((_EPOCH - value) // timedelta(milliseconds=1))  # rounded up: never before its time
        return min(max(_FIRST_MS, whole), _LAST_MS)
    except OverflowError as error:
        raise InvalidTask(f"{owner}: {name} is {value!r}, which is too far away.") from error


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_MS = 1  # a header has no sign, and 0 stands for never
_LAST_MS = 253_402_300_799_999  # of the year 9999, so that it can be shown


def _is_finite(value: Any) -> bool:
    # Compared, because math.isfinite() raises for integers that are too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


ClientOption = str | Callable[..., Any]
