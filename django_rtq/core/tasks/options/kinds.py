"""The kinds of values that options of tasks have, beside those of all options."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone as django_timezone

from django_rtq.core.conf.config import uses_time_zones
from django_rtq.core.conf.option import Kind, Unfit
from django_rtq.core.conf.queue_options import QUEUE_NAME
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.job import EPOCH
from django_rtq.core.tasks.calls import client_name
from django_rtq.core.validation import TEN_YEARS, is_finite
from django_rtq.exceptions import InvalidTask, Unserializable

Moment = float | timedelta | datetime

MAX_HEADER_NAME = 100  # characters
MAX_HEADER_BYTES = 4096  # of JSON, all headers together


def moment_argument(owner: str, name: str, value: Moment | None) -> str:
    """A delay or a moment for scripts: "+ms" from now, "ms" since 1970, "" for None. Raises InvalidTask."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return str(_milliseconds(owner, name, value))
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    is_negative = name == "expires" and is_finite(seconds) and seconds < 0
    if not is_finite(seconds) or seconds > TEN_YEARS or is_negative:
        raise InvalidTask(
            f"{owner}: {name} is {value!r}, but has to be seconds or a timedelta, of at most ten years, or an aware "
            f"datetime.{' A job that expires before it is sent would never run.' if is_negative else ''}"
        )
    return f"+{round(max(0, seconds) * 1000)}"


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


def _queue(value: Any) -> str:
    if value is None or value == "":
        return ""
    return str.__str__(QUEUE_NAME.read(value))  # Enum.__str__ may return the name of the member


def _client(value: Any) -> Any:
    if not callable(value):
        try:
            return client_name("", value)
        except InvalidTask as error:
            raise Unfit(str(error).strip()) from None
    if inspect.iscoroutinefunction(value):
        raise Unfit("is an async function, but it is called without await.")
    return value


def _errors(value: Any) -> tuple[type[BaseException], ...]:
    classes = value if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(c, type) and issubclass(c, BaseException) for c in classes):
        raise ValueError
    return tuple(classes)


def _headers(value: Any) -> Mapping[str, Any]:
    """The headers as a dictionary of their own."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError
    headers_text(value)
    return dict(value)


def headers_text(headers: Mapping[Any, Any]) -> str:
    """Headers as JSON. Raises Unfit."""
    for name in headers:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_HEADER_NAME or not name.isprintable():
            raise Unfit(f"has the name {name!r}, but names have 1 to {MAX_HEADER_NAME} printable characters.")
    try:
        text = serializer.dumps(dict(headers), what="headers")
    except Unserializable as error:
        raise Unfit(f"cannot be stored: {error}") from None
    size = len(text.encode())
    if size > MAX_HEADER_BYTES:
        raise Unfit(
            f"has {size:,} bytes as JSON, and {MAX_HEADER_BYTES:,} are the most. "
            "Store large values elsewhere, or pass them as arguments."
        )
    return text


QUEUE = Kind(QUEUE_NAME.says, _queue)  # None or "": that of the settings
CLIENT = Kind("", _client)
ERRORS = Kind("an exception class, or a tuple of them", _errors)
HEADERS = Kind("a dictionary of names and JSON values", _headers)
