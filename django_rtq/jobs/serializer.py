"""Arguments and results, to JSON text and back.

======================================  ================================================
what goes in                            what comes out
======================================  ================================================
str, int of any size, float, bool,      the same
None, list, dict with text as keys
date, time, datetime, timedelta,        the same, to the microsecond
Decimal, UUID
datetime or time with a time zone       the same moment and offset from UTC; the zone has
                                        become that fixed offset, its name is not kept
a lazy translation                      str, in the language that was active
tuple, and named tuples                 list
subclasses of all these, also IntEnum,  the plain value
StrEnum, TextChoices, OrderedDict
======================================  ================================================

All else is refused where the job is made, in words that name the argument: what would come back as
something else is worse than an error. What JSON has no word for is written as ``{"$rtq": [type, …]}``.
Reading builds the types of this table and no others: nothing in a payload is imported, called or run.
"""

from __future__ import annotations

import io
import json
import reprlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence, Set, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from operator import ne
from types import FunctionType, MethodType
from typing import Any, NoReturn
from uuid import UUID

from django.core.files import File
from django.db.models import Model, QuerySet
from django.utils.datastructures import MultiValueDict
from django.utils.functional import LazyObject, Promise

from django_rtq.exceptions import PayloadError, Unserializable

TAG = "$rtq"

#: Levels of lists and dictionaries in one another. Reading takes three levels of JSON for each at the
#: worst, and has to stay far from Python's recursion limit of 1,000, whoever calls.
MAX_DEPTH = 100


def dumps(value: Any, *, what: str = "value", in_order: bool = False) -> str:
    """The value as compact JSON text. ``what`` is its name in messages; in order, equal values are the same text.

    Raises Unserializable, which says where in the value the trouble is and what to pass instead.
    """
    try:
        return (_encode_sorted if in_order else _to_text)(_plain(value, 0))
    except (_Refused, ValueError) as error:
        where, trouble = _find_trouble(value, (), 0) or ((), f"cannot be stored: {error}")
        raise Unserializable(f"{what}{_path_text(where)} {trouble}") from None


def dumps_call(args: Sequence[Any], kwargs: dict[str, Any], *, names: Sequence[str], task: str) -> str:
    """The arguments of a call as members of a JSON object: ``"args":[7,42],"kwargs":{"a":1}``.

    A part without arguments is left out, so it is ``""`` for a call without any. ``names`` are the
    task's positional parameters, for messages. Raises Unserializable, which names task and argument.
    """
    call: dict[str, Any] = {}
    try:
        if not kwargs and _INTEGERS.issuperset(map(type, args)):  # a primary key, say: so usual that it is worth a way
            return f'"args":[{",".join(map(str, args))}]' if args else ""
        if args:
            call["args"] = _plain_list(args, 0)
        if kwargs:
            call["kwargs"] = _plain_dict(kwargs, 0)
        return _to_text(call)[1:-1]
    except (_Refused, ValueError) as error:
        found = _find_trouble({"args": args, "kwargs": kwargs}, (), -1)
        where, trouble = found or ((), f"cannot be stored: {error}")
        raise Unserializable(f"{task}(): {_argument_text(where, names)} {trouble}") from None


def loads(text: str | bytes) -> Any:
    """The value of what dumps wrote, or of any other JSON text.

    Raises PayloadError if it is not UTF-8, not JSON, or nested too deeply.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        text = text.strip(" \t\r\n")
        # The hook is a Python call for each object, so it is used only if there is something to find.
        value, end = _read_tagged(text) if _TAG_IN_TEXT in text else _read(text)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"This payload cannot be read: {error}") from error
    if end != len(text):
        raise PayloadError(f"This payload cannot be read: more text follows after its end at character {end}.")
    return value


# Writing: first everything becomes JSON's own types, then C does the rest. Most arguments are plain
# scalars, which a loop in C can tell, so that only containers and special types cost a Python call.


class _Refused(Exception):
    """JSON cannot carry a value. Reads as the end of a sentence about it: "is a set, which …"."""


_SCALARS = frozenset({str, int, float, bool, type(None)})
_STRINGS = frozenset({str})
_INTEGERS = frozenset({int})

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_write = c_make_encoder and c_make_encoder(None, _JSON.default, encode_basestring, None, ":", ",", False, False, False)
_encode_sorted = json.JSONEncoder(allow_nan=False, check_circular=False, sort_keys=True).encode


def _to_text(value: Any) -> str:
    """Raises ValueError for NaN, for lone surrogates, and for integers longer than Python's limit."""
    # encode() would make the encoder in C anew, which takes as long as all the rest.
    text = "".join(_write(value, 0)) if _write else _JSON.encode(value)
    if not text.isascii():
        text.encode()
    return text


def _plain(value: Any, depth: int) -> Any:
    """The value made of JSON's types alone. Changes nothing in it. Raises _Refused."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    return (_ENCODERS.get(kind) or _encoder_of(kind))(value, depth)


def _plain_list(value: Sequence[Any], depth: int) -> Sequence[Any]:
    if depth >= MAX_DEPTH:
        raise _Refused(_TOO_DEEP)
    if _SCALARS.issuperset(map(type, value)):
        return value
    return [item if type(item) in _SCALARS else _plain(item, depth + 1) for item in value]


def _plain_dict(value: dict[str, Any], depth: int) -> dict[str, Any]:
    if depth >= MAX_DEPTH:
        raise _Refused(_TOO_DEEP)
    if not _STRINGS.issuperset(map(type, value)):
        # json.dumps would write the key 1 as "1", and nobody would notice until the job runs.
        for trouble in filter(None, map(_key_trouble, value)):
            raise _Refused(trouble)
    if TAG in value:
        # A user's own dictionary with our tag: as pairs it cannot be taken for one of ours.
        return _tagged("dict", [[key, _plain(item, depth + 1)] for key, item in value.items()])
    if _SCALARS.issuperset(map(type, value.values())):
        return value
    return {k: item if type(item) in _SCALARS else _plain(item, depth + 1) for k, item in value.items()}


def _plain_moment(value: datetime | time, depth: int) -> dict[str, Any]:
    if ne(value, value):
        # Only pandas.NaT: a datetime by its class, which would silently become the year 1.
        raise _Refused("is not a time. Pass None instead.")
    # Through the class, because a subclass may write itself differently.
    kind = datetime if issubclass(type(value), datetime) else time
    text = kind.isoformat(value)  # type: ignore[arg-type]
    offset = value.utcoffset()
    if offset and abs(offset) < timedelta(seconds=1):
        raise _Refused("is under a second off UTC, which Python reads as UTC. Pass it in UTC instead.")
    if offset is not None:
        return _tagged(kind.__name__, text)
    if value.tzinfo is not None:
        raise _Refused("has a time zone, but no offset from UTC. Pass a whole datetime instead.")
    # Naive: the second 01:30 of an autumn night differs from the first by its fold alone.
    return _tagged(kind.__name__, text, 1) if value.fold else _tagged(kind.__name__, text)


def _plain_decimal(value: Decimal, depth: int) -> dict[str, Any]:
    if not value.is_finite():
        raise _Refused(f"is {value}, which is not a number. Pass None or a string instead.")
    return _tagged("decimal", Decimal.__str__(value))


def _refuse(value: Any, depth: int) -> NoReturn:
    kind = type(value)
    cure = next((cure for kinds, cure in _CURES if issubclass(kind, kinds)), _ANY_CURE)
    raise _Refused(f"is {_kind_text(kind)}, which JSON cannot carry. {cure}")


def _tagged(kind: str, *parts: Any) -> dict[str, Any]:
    return {TAG: [kind, *parts]}


def _encoder_of(kind: type) -> Callable[[Any, int], Any]:
    # By the real type, never isinstance: that would wake lazy objects, and ask the database.
    return next((_ENCODERS[base] for base in kind.__mro__ if base in _ENCODERS), _refuse)


_ENCODERS: dict[type, Callable[[Any, int], Any]] = {
    list: _plain_list,
    tuple: _plain_list,
    dict: _plain_dict,
    MultiValueDict: _refuse,  # as a dictionary it would keep one value of many
    datetime: _plain_moment,
    time: _plain_moment,
    date: lambda value, depth: _tagged("date", date.isoformat(value)),
    timedelta: lambda value, depth: _tagged("timedelta", value.days, value.seconds, value.microseconds),
    Decimal: _plain_decimal,
    UUID: lambda value, depth: _tagged("uuid", UUID.__str__(value)),
    Promise: lambda value, depth: str(value),
    # Subclasses only; the encoder in C writes their plain value.
    **dict.fromkeys((str, int, float), lambda value, depth: value),
}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON.")


def _untag(item: dict[str, Any]) -> Any:
    if TAG not in item:
        return item
    try:
        [(kind, *parts)] = item.values()
        return _DECODERS[kind](*parts)
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise ValueError(f"a value tagged {TAG} is malformed ({type(error).__name__}).") from error


def _read_moment(kind: type[datetime] | type[time], text: str, fold: int = 0) -> datetime | time:
    return kind.fromisoformat(text).replace(fold=fold)


_DECODERS: dict[str, Callable[..., Any]] = {
    "dict": dict,
    "datetime": partial(_read_moment, datetime),
    "time": partial(_read_moment, time),
    "date": date.fromisoformat,
    "timedelta": timedelta,
    "decimal": Decimal,
    "uuid": UUID,
}

_TAG_IN_TEXT = f'"{TAG}"'
_read = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
_read_tagged = json.JSONDecoder(parse_constant=_refuse_constant, object_hook=_untag).raw_decode


# Complaining: a second, slow walk that finds the first trouble, so that the fast one need not know
# where it is.

_Path = tuple[Any, ...]

_TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep, or contains itself. Pass something flatter."
_SURROGATE = (
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


def _find_trouble(value: Any, where: _Path, depth: int) -> tuple[_Path, str] | None:
    """The first place, in the order of writing, that JSON cannot carry, and what is wrong there."""
    encoder = _encoder_of(type(value))
    items: Iterable[tuple[Any, Any]]
    if encoder is _plain_list:
        items = enumerate(value)
    elif encoder is _plain_dict:
        items = value.items()
    else:
        trouble = _trouble_of(value)
        return (where, trouble) if trouble else None
    if depth >= MAX_DEPTH:
        return where, _TOO_DEEP
    for key, item in items:
        if encoder is _plain_dict and (trouble := _key_trouble(key)):
            return where, trouble
        if found := _find_trouble(item, (*where, key), depth + 1):
            return found
    return None


def _key_trouble(key: Any) -> str | None:
    if not issubclass(type(key), str):
        return (
            f"has the key {reprlib.repr(key)}, {_kind_text(type(key))}, but the keys of JSON are text. "
            "Pass a dictionary with strings as keys, or a list of pairs instead."
        )
    try:
        key.encode()
    except UnicodeEncodeError:
        return f"has the key {_quoted(key)}, which holds {_SURROGATE}"
    return None


def _trouble_of(value: Any) -> str | None:
    """What is wrong with a value that is no container, or None."""
    try:
        _to_text(_plain(value, 0))
    except _Refused as refused:
        return str(refused)
    except UnicodeEncodeError:
        return f"holds {_SURROGATE}"
    except ValueError as error:
        if issubclass(type(value), float):
            return f"is {float.__repr__(value)}, which JSON does not know. Pass None or a string instead."
        return f"cannot be written as text: {error}"
    return None


def _kind_text(kind: type) -> str:
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{'an' if name.lstrip('_')[:1] in 'aeioAEIO' else 'a'} {name}"


def _argument_text(where: _Path, names: Sequence[str]) -> str:
    match where:
        case ("args", int(number), *path):
            # One beyond the names belongs to *args, and has a number only.
            name = _quoted(names[number]) if number < len(names) else str(number + 1)
        case ("kwargs", str(key), *path):
            name = _quoted(key)
        case ("kwargs",):
            return "the dictionary of keyword arguments"
        case _:
            return "the call"
    return f"argument {name}{' at ' if path else ''}{_path_text(path)}"


def _path_text(where: Sequence[Any]) -> str:
    steps = [f"[{_quoted(key) if isinstance(key, str) else key}]" for key in where]
    return "".join(steps[:8]) + ("…" if steps[8:] else "")


def _quoted(name: str) -> str:
    # Escaped unless it is harmless to print: messages end up in logs and on terminals.
    return json.dumps(name[:60], ensure_ascii=not name.isprintable())
