"""Converts values to JSON's own types and back.

Types that JSON does not have are written as ``{"$rtq": [type, …]}``. Most arguments are plain values, which a loop in C
detects; only lists, dictionaries and special types cost a Python call each.
"""

from __future__ import annotations

import io
import json
import reprlib
from collections import deque
from collections.abc import Callable, Generator, Sequence, Set, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from operator import ne
from types import FunctionType, MethodType
from typing import Any, NoReturn
from uuid import UUID

from django.core.files import File
from django.db.models import Model, QuerySet
from django.utils.datastructures import MultiValueDict
from django.utils.functional import LazyObject, Promise

TAG = "$rtq"

#: Nested lists and dictionaries. Each takes up to three levels of JSON, far from Python's recursion limit of 1,000.
MAX_DEPTH = 100


class Refused(Exception):
    """A value cannot be written as JSON. The text continues a sentence about it: "is a set, which …"."""


SCALARS = frozenset({str, int, float, bool, type(None)})
_STRINGS = frozenset({str})


TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep, or contains itself. Pass something flatter."
SURROGATE = (
    "a lone surrogate, which is half a character and has no UTF-8. "
    'Pass text.encode("utf-8", "replace").decode() instead.'
)
_ANY_CURE = "Pass plain data instead: text, numbers, lists, dictionaries."
_CURES: tuple[tuple[tuple[Any, ...], str], ...] = (
    ((Model,), "Pass its primary key instead."),
    ((QuerySet,), "Pass a list of primary keys instead."),
    ((MultiValueDict,), "Pass its .dict(), or dict(data.lists()), instead."),
    ((LazyObject,), "Pass what the task needs of it instead, such as a primary key."),
    ((bytes, bytearray, memoryview), "Pass text instead, for instance in base64."),
    ((File, io.IOBase), "Store it and pass its name instead."),
    ((Enum,), "Pass its value instead."),
    ((Set, ValuesView, range, deque, Generator), "Pass a list instead."),
    ((type, FunctionType, MethodType), "Pass a name instead, and look it up in the task."),
)


def convert(value: Any, depth: int) -> Any:
    """The value converted to JSON's own types; the value itself is not changed. Raises Refused."""
    kind = type(value)
    if kind in SCALARS:
        return value
    return (_CONVERTERS.get(kind) or converter_of(kind))(value, depth)


def convert_list(value: Sequence[Any], depth: int) -> Sequence[Any]:
    if depth >= MAX_DEPTH:
        raise Refused(TOO_DEEP)
    if SCALARS.issuperset(map(type, value)):
        return value
    return [item if type(item) in SCALARS else convert(item, depth + 1) for item in value]


def convert_dict(value: dict[str, Any], depth: int) -> dict[str, Any]:
    if depth >= MAX_DEPTH:
        raise Refused(TOO_DEEP)
    if not _STRINGS.issuperset(map(type, value)):
        # json.dumps() would silently write the key 1 as "1".
        for trouble in filter(None, map(key_trouble, value)):
            raise Refused(trouble)
    if TAG in value:
        # A dictionary of the user with our tag as a key: written as pairs, so that it is not read as a tagged value.
        return _tagged("dict", [[key, convert(item, depth + 1)] for key, item in value.items()])
    if SCALARS.issuperset(map(type, value.values())):
        return value
    return {k: item if type(item) in SCALARS else convert(item, depth + 1) for k, item in value.items()}


def _convert_moment(value: datetime | time, depth: int) -> dict[str, Any]:
    if ne(value, value):
        # Only pandas.NaT: its class is a subclass of datetime, and it would silently become the year 1.
        raise Refused("is not a time. Pass None instead.")
    # datetime's own isoformat(), because a subclass may override it.
    kind = datetime if issubclass(type(value), datetime) else time
    text = kind.isoformat(value)  # type: ignore[arg-type]
    offset = value.utcoffset()
    if offset and abs(offset) < timedelta(seconds=1):
        raise Refused("is under a second off UTC, which Python reads as UTC. Pass it in UTC instead.")
    if offset is not None:
        return _tagged(kind.__name__, text)
    if value.tzinfo is not None:
        raise Refused("has a time zone, but no offset from UTC. Pass a whole datetime instead.")
    # Naive: when clocks are put back, the second 01:30 differs from the first only by its fold.
    return _tagged(kind.__name__, text, 1) if value.fold else _tagged(kind.__name__, text)


def _convert_decimal(value: Decimal, depth: int) -> dict[str, Any]:
    if not value.is_finite():
        raise Refused(f"is {value}, which is not a number. Pass None or a string instead.")
    return _tagged("decimal", Decimal.__str__(value))


def _refuse(value: Any, depth: int) -> NoReturn:
    kind = type(value)
    cure = next((cure for kinds, cure in _CURES if issubclass(kind, kinds)), _ANY_CURE)
    raise Refused(f"is {kind_text(kind)}, which JSON cannot carry. {cure}")


def _tagged(kind: str, *parts: Any) -> dict[str, Any]:
    return {TAG: [kind, *parts]}


def converter_of(kind: type) -> Callable[[Any, int], Any]:
    # By the real type, never isinstance(): that would evaluate lazy objects, and may query the database.
    return next((_CONVERTERS[base] for base in kind.__mro__ if base in _CONVERTERS), _refuse)


_CONVERTERS: dict[type, Callable[[Any, int], Any]] = {
    list: convert_list,
    tuple: convert_list,
    dict: convert_dict,
    MultiValueDict: _refuse,  # as a convert dictionary it would lose values
    datetime: _convert_moment,
    time: _convert_moment,
    date: lambda value, depth: _tagged("date", date.isoformat(value)),
    timedelta: lambda value, depth: _tagged("timedelta", value.days, value.seconds, value.microseconds),
    Decimal: _convert_decimal,
    UUID: lambda value, depth: _tagged("uuid", UUID.__str__(value)),
    Promise: lambda value, depth: str(value),
    # Subclasses only; the encoder in C writes their plain value.
    **dict.fromkeys((str, int, float), lambda value, depth: value),
}


def restore(item: dict[str, Any]) -> Any:
    if TAG not in item:
        return item
    try:
        [(kind, *parts)] = item.values()
        return _RESTORERS[kind](*parts)
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise ValueError(f"a value tagged {TAG} is malformed ({type(error).__name__}).") from error


def _restore_moment(kind: type[datetime] | type[time], text: str, fold: int = 0) -> datetime | time:
    return kind.fromisoformat(text).replace(fold=fold)


_RESTORERS: dict[str, Callable[..., Any]] = {
    "dict": dict,
    "datetime": partial(_restore_moment, datetime),
    "time": partial(_restore_moment, time),
    "date": date.fromisoformat,
    "timedelta": timedelta,
    "decimal": Decimal,
    "uuid": UUID,
}


def key_trouble(key: Any) -> str | None:
    if not issubclass(type(key), str):
        return (
            f"has the key {reprlib.repr(key)}, {kind_text(type(key))}, but the keys of JSON are text. "
            "Pass a dictionary with strings as keys, or a list of pairs instead."
        )
    try:
        key.encode()
    except UnicodeEncodeError:
        return f"has the key {quoted(key)}, which holds {SURROGATE}"
    return None


def kind_text(kind: type) -> str:
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{'an' if name.lstrip('_')[:1] in 'aeioAEIO' else 'a'} {name}"


def quoted(name: str) -> str:
    # Escaped unless it is printable: messages are written to logs and terminals.
    return json.dumps(name[:60], ensure_ascii=not name.isprintable())
