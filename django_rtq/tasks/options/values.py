"""Validates and normalizes the options of a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone as django_timezone

from django_rtq.conf.config import is_database, uses_time_zones
from django_rtq.conf.queue_options import check_queue_name
from django_rtq.exceptions import InvalidTask
from django_rtq.jobs.job import EPOCH
from django_rtq.tasks.calls import ClientOption, client_name
from django_rtq.tasks.options.backoff import Backoff, as_backoff
from django_rtq.tasks.options.headers import headers_option
from django_rtq.validation import TEN_YEARS, is_finite, is_whole

Moment = float | timedelta | datetime


def queue_name(owner: str, value: Any) -> str:
    """The name of a queue; "" for the default of the settings. Raises InvalidTask."""
    if value is None or value == "":
        return ""
    try:
        check_queue_name(value)
    except InvalidTask as error:
        raise InvalidTask(f"{owner}: {error}") from None
    return str.__str__(value)  # Enum.__str__ may return the name of the member


def priority_number(owner: str, value: Any) -> int:
    """An integer from -100 to 100. Raises InvalidTask."""
    if not is_whole(value) or not -100 <= value <= 100:
        raise InvalidTask(f"{owner}: priority is {value!r}, but has to be a whole number from -100 to 100.")
    return int(value)  # redis-py cannot write an IntEnum


def count_number(owner: str, name: str, value: Any, *, minimum: int) -> int | None:
    """None, or an integer, `minimum` or more. Raises InvalidTask."""
    if value is None:
        return None
    if not is_whole(value) or value < minimum:
        raise InvalidTask(f"{owner}: {name} is {value!r}, but has to be a whole number, {minimum} or more.")
    return int(value)


def check_flag(owner: str, name: str, value: Any) -> bool:
    """The value: True or False. Raises InvalidTask."""
    if not isinstance(value, bool):
        raise InvalidTask(f"{owner}: {name} is {value!r}, but has to be True or False.")
    return value


def check_on_commit(owner: str, value: Any) -> Any:
    """The value: None, True, False or the alias of a database. Raises InvalidTask."""
    if value is not None and not isinstance(value, bool) and not is_database(value):
        raise InvalidTask(
            f"{owner}: on_commit is {value!r}, but has to be True, False, or the alias of a database in DATABASES."
        )
    return value


def check_seconds(owner: str, name: str, value: Any, *, may_be_zero: bool) -> Any:
    """The value: None, or a number of seconds. Raises InvalidTask."""
    if value is None:
        return None
    if not is_finite(value) or value < 0 or (value == 0 and not may_be_zero) or value > TEN_YEARS:
        least = "0" if may_be_zero else "more than 0"
        raise InvalidTask(f"{owner}: {name} is {value!r}, but has to be seconds, {least} to ten years.")
    return value


def check_errors(owner: str, name: str, value: Any) -> tuple[type[BaseException], ...]:
    """One exception class or several, as a tuple. Raises InvalidTask."""
    classes = value if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(c, type) and issubclass(c, BaseException) for c in classes):
        raise InvalidTask(f"{owner}: {name} is {value!r}, but has to be an exception class, or a tuple of them.")
    return tuple(classes)


def moment_argument(owner: str, name: str, value: Moment | None) -> str:
    """A delay or a moment for scripts: "+ms" from now, "ms" since 1970, "" for None. Raises InvalidTask."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return str(_milliseconds(owner, name, value))
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not is_finite(seconds) or seconds > TEN_YEARS:
        raise InvalidTask(
            f"{owner}: {name} is {value!r}, but has to be a timedelta of at most ten years, or an aware datetime."
        )
    return f"+{round(max(0, seconds) * 1000)}"


def backoff_option(owner: str, value: Any) -> Backoff:
    """The option `backoff` of a task. Raises InvalidTask."""
    try:
        return as_backoff(value)
    except InvalidTask as error:
        raise InvalidTask(f"{owner}: {error}") from error


def client_option(owner: str, value: Any) -> ClientOption:
    """The option `client`: a name, or a function that returns it. Raises InvalidTask."""
    if not callable(value):
        return client_name(owner, value)
    if inspect.iscoroutinefunction(value):
        raise InvalidTask(f"{owner}: client is an async function, but it is called without await.")
    function: Callable[..., Any] = value
    return function


def _milliseconds(owner: str, name: str, value: datetime) -> int:
    if django_timezone.is_naive(value):
        if uses_time_zones():
            raise InvalidTask(
                f"{owner}: {name} is {value!r}, a datetime without a time zone, but USE_TZ is on. "
                "Use django.utils.timezone.now() and the like."
            )
        value = django_timezone.make_aware(value)
    try:
        whole = -((EPOCH - value) // timedelta(milliseconds=1))  # rounded up, so that a job never starts early
        return min(max(_FIRST_MS, whole), _LAST_MS)
    except OverflowError as error:
        raise InvalidTask(f"{owner}: {name} is {value!r}, which is out of range.") from error


_FIRST_MS = 1  # the header of a record has no sign, and 0 means never
_LAST_MS = 253_402_300_799_999  # the end of the year 9999, the last that datetime supports


#: Option -> function of the task's name and a value, which returns the value to use. Each raises InvalidTask.
NORMALIZERS: dict[str, Callable[[str, Any], Any]] = {
    "queue_name": queue_name,
    "client": client_option,
    "priority": priority_number,
    "max_attempts": lambda owner, value: count_number(owner, "max_attempts", value, minimum=1),
    "max_crashes": lambda owner, value: count_number(owner, "max_crashes", value, minimum=0),
    "time_limit": lambda owner, value: check_seconds(owner, "time_limit", value, may_be_zero=False),
    "result_ttl": lambda owner, value: check_seconds(owner, "result_ttl", value, may_be_zero=True),
    "on_commit": check_on_commit,
    "headers": headers_option,
    "at_front": lambda owner, value: check_flag(owner, "at_front", value),
}
