"""The options of a task: checked when the task is declared, and turned into what the broker takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from django.utils import timezone as django_timezone

from django_rtq.conf import uses_time_zones
from django_rtq.exceptions import InvalidTask

Moment = float | timedelta | datetime

LONGEST_SECONDS = 10 * 365 * 86_400.0  # ten years: more is a mistake of units
LONGEST_CLIENT = 200


def check_priority(owner: str, value: Any) -> None:
    """Raises InvalidTask unless it is a whole number from -100 to 100."""
    if not isinstance(value, int) or isinstance(value, bool) or not -100 <= value <= 100:
        raise InvalidTask(f"{owner}: priority is {value!r}, but has to be a whole number from -100 to 100.")


def check_count(owner: str, name: str, value: Any, *, least: int) -> None:
    """Raises InvalidTask unless it is None or a whole number, `least` or more."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
        raise InvalidTask(f"{owner}: {name} is {value!r}, but has to be a whole number, {least} or more.")


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
    return f"+{max(0, round(seconds * 1000))}"


def client_name(owner: str, value: Any) -> str:
    """The name of a client: text, or a number or UUID as text. Raises InvalidTask."""
    if isinstance(value, int | UUID) and not isinstance(value, bool):
        value = str(value)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidTask(f"{owner}: client is {value!r}, but has to be text, a whole number or a UUID.")
    if len(value) > LONGEST_CLIENT or not value.isprintable():
        raise InvalidTask(
            f"{owner}: client is {value[:50]!r}…, but has to be at most {LONGEST_CLIENT} printable characters."
        )
    return value


def _milliseconds(owner: str, name: str, value: datetime) -> int:
    if django_timezone.is_naive(value):
        if uses_time_zones():
            raise InvalidTask(
                f"{owner}: {name} is {value!r}, a datetime without a time zone, but USE_TZ is on. "
                "Use django.utils.timezone.now() and the like."
            )
        value = django_timezone.make_aware(value)
    try:
        return round((value - _EPOCH).total_seconds() * 1000)
    except OverflowError as error:
        raise InvalidTask(f"{owner}: {name} is {value!r}, which is too far away.") from error


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


ClientOption = str | Callable[..., Any]
