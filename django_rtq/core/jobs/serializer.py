"""Serializes arguments and results to JSON text and back.

======================================  ================================================
value                                   what it comes back as
======================================  ================================================
str, int of any size, float, bool,      the same
None, list, dict with string keys
date, time, datetime, timedelta,        the same, to the microsecond
Decimal, UUID
datetime or time with a time zone       the same moment and UTC offset, without the name of the zone
a lazy translation                      str, in the language that was active
tuple, and named tuples                 list
subclasses of all these, also IntEnum,  the plain value
StrEnum, TextChoices, OrderedDict
======================================  ================================================

Everything else is rejected when the job is made, with a message that names the argument. Types that JSON does not have
are written as ``{"$rtq": [type, …]}``. Reading creates the types of this table only; nothing is imported or called.
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
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, QuerySet
from django.utils.datastructures import MultiValueDict
from django.utils.functional import LazyObject, Promise

from django_rtq.core.extension import parts
from django_rtq.exceptions import PayloadError, PayloadTooLarge, Unserializable


def dumps(value: Any, *, what: str = "value", in_order: bool = False) -> str:
    """The value as compact JSON text. ``what`` names it in messages; with ``in_order``, equal values get equal texts.

    Raises Unserializable, which says where in the value the problem is and what to pass instead.
    """
    try:
        kind = type(value)
        if kind is int:
            return str(value)
        return (_encode_sorted if in_order else _to_text)(value if kind is str else _convert(value, 0))
    except (_Refused, ValueError) as error:
        where, trouble = _find_trouble(value, (), 0) or ((), f"cannot be stored: {error}")
        raise Unserializable(f"{what}{_path_text(where)} {trouble}") from None


def dumps_call(args: Sequence[Any], kwargs: dict[str, Any], *, names: Sequence[str], task: str) -> str:
    """The arguments of a call as members of a JSON object: ``"args":[7,42],"kwargs":{"a":1}``.

    Empty parts are left out; ``""`` for a call without arguments. ``names``: the positional parameters of the task, for
    messages. Raises Unserializable, which names the task and the argument.
    """
    call: dict[str, Any] = {}
    try:
        if not kwargs and _INTEGERS.issuperset(map(type, args)):  # a fast path for primary keys
            return f'"args":[{",".join(map(str, args))}]' if args else ""
        if args:
            call["args"] = _convert_list(args, 0)
        if kwargs:
            call["kwargs"] = _convert_dict(kwargs, 0)
        return _to_text(call)[1:-1]
    except (_Refused, ValueError) as error:
        found = _find_trouble({"args": args, "kwargs": kwargs}, (), -1)
        where, trouble = found or ((), f"cannot be stored: {error}")
        raise Unserializable(f"{task}(): {_argument_text(where, names)} {trouble}") from None


def loads(text: str | bytes) -> Any:
    """Read what dumps() wrote, or any other JSON text.

    Raises PayloadError if the text is not UTF-8, not JSON, or nested too deeply.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        text = text.strip(" \t\r\n")
        # The hook costs a Python call for each object, so it is used only if the text contains a tag.
        value, end = _read_tagged(text) if _TAG_IN_TEXT in text else _read(text)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"This payload cannot be read: {error}") from error
    if end != len(text):
        raise PayloadError(f"This payload cannot be read: more text follows after its end at character {end}.")
    return value


def check_size(task: str, subject: str, text: str, limit: int, advice: str, setting: str = "MAX_PAYLOAD_BYTES") -> None:
    """Raises PayloadTooLarge for JSON of more bytes than a setting allows. `subject`: "the result has"."""
    if len(text) * 4 <= limit:
        return  # a character has at most four bytes, and to count them takes longer
    size = len(text.encode())
    if size > limit:
        raise PayloadTooLarge(f'{task}: {subject} {size:,} bytes as JSON, but RTQ["{setting}"] is {limit:,}. {advice}')


def check_body(task: str, body: str, limit: int) -> None:
    """Raises PayloadTooLarge for the JSON of a record of more bytes than this."""
    check_size(task, "the arguments have", body, limit, "Store them and pass a key.")


def unquoted(text: str) -> str:
    """The value of a JSON string, given without its quotes, that may have been cut off anywhere."""
    while "\\" in text:
        try:
            return str(json.loads(f'"{text}"'))
        except ValueError:
            text = text[:-1]
    return text


# -- JSON's own types, and those that are tagged. Most arguments are plain values, which a loop in C detects; only
# lists, dictionaries and special types cost a Python call each.

TAG = "$rtq"

#: Nested lists and dictionaries. Each takes up to three levels of JSON, far from Python's recursion limit of 1,000.
MAX_DEPTH = 100


class _Refused(Exception):
    """A value cannot be written as JSON. The text continues a sentence about it: "is a set, which …"."""


_SCALARS = frozenset({str, int, float, bool, type(None)})
_STRINGS = frozenset({str})


_TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep, or contains itself. Pass something flatter."
_SURROGATE = (
    "a lone surrogate, which is half a character and has no UTF-8. "
    'Pass text.encode("utf-8", "replace").decode() instead.'
)
_ANY_CURE = "Pass plain data instead: text, numbers, lists, dictionaries."
#: By types, what to pass instead of them. Apps may have more.
CURES: list[tuple[tuple[Any, ...], str]] = [
    ((Model,), "Pass its primary key instead."),
    ((QuerySet,), "Pass a list of primary keys instead."),
    ((MultiValueDict,), "Pass its .dict(), or dict(data.lists()), instead."),
    ((LazyObject,), "Pass what the task needs of it instead, such as a primary key."),
    ((bytes, bytearray, memoryview), "Pass text instead, for instance in base64."),
    ((File, io.IOBase), "Store it and pass its name instead."),
    ((Enum,), "Pass its value instead."),
    ((Set, ValuesView, range, deque, Generator), "Pass a list instead."),
    ((type, FunctionType, MethodType), "Pass a name instead, and look it up in the task."),
]


def _convert(value: Any, depth: int) -> Any:
    """The value converted to JSON's own types; the value itself is not changed. Raises _Refused."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    return (_CONVERTERS.get(kind) or _converter_of(kind))(value, depth)


def _convert_list(value: Sequence[Any], depth: int) -> Sequence[Any]:
    if depth >= MAX_DEPTH:
        raise _Refused(_TOO_DEEP)
    if _SCALARS.issuperset(map(type, value)):
        return value
    return [item if type(item) in _SCALARS else _convert(item, depth + 1) for item in value]


def _convert_dict(value: dict[str, Any], depth: int) -> dict[str, Any]:
    if depth >= MAX_DEPTH:
        raise _Refused(_TOO_DEEP)
    if not _STRINGS.issuperset(map(type, value)):
        # json.dumps() would silently write the key 1 as "1".
        for trouble in filter(None, map(_key_trouble, value)):
            raise _Refused(trouble)
    if TAG in value:
        # A dictionary of the user with our tag as a key: written as pairs, so that it is not read as a tagged value.
        return _tagged("dict", [[key, _convert(item, depth + 1)] for key, item in value.items()])
    if _SCALARS.issuperset(map(type, value.values())):
        return value
    return {k: item if type(item) in _SCALARS else _convert(item, depth + 1) for k, item in value.items()}


def _convert_moment(value: datetime | time, depth: int) -> dict[str, Any]:
    if ne(value, value):
        # Only pandas.NaT: its class is a subclass of datetime, and it would silently become the year 1.
        raise _Refused("is not a time. Pass None instead.")
    # datetime's own isoformat(), because a subclass may override it.
    kind = datetime if issubclass(type(value), datetime) else time
    text = kind.isoformat(value)  # type: ignore[arg-type]
    offset = value.utcoffset()
    if offset and abs(offset) < timedelta(seconds=1):
        raise _Refused("is under a second off UTC, which Python reads as UTC. Pass it in UTC instead.")
    if offset is not None:
        return _tagged(kind.__name__, text)
    if value.tzinfo is not None:
        raise _Refused("has a time zone, but no offset from UTC. Pass a whole datetime instead.")
    # Naive: when clocks are put back, the second 01:30 differs from the first only by its fold.
    return _tagged(kind.__name__, text, 1) if value.fold else _tagged(kind.__name__, text)


def _convert_decimal(value: Decimal, depth: int) -> dict[str, Any]:
    if not value.is_finite():
        raise _Refused(f"is {value}, which is not a number. Pass None or a string instead.")
    return _tagged("decimal", Decimal.__str__(value))


def _refuse(value: Any, depth: int) -> NoReturn:
    kind = type(value)
    cure = next((cure for kinds, cure in CURES if issubclass(kind, kinds)), _ANY_CURE)
    raise _Refused(f"is {_kind_text(kind)}, which JSON cannot carry. {cure}")


def _tagged(kind: str, *parts: Any) -> dict[str, Any]:
    return {TAG: [kind, *parts]}


def _converter_of(kind: type) -> Callable[[Any, int], Any]:
    # By the real type, never isinstance(): that would evaluate lazy objects, and may query the database.
    return next((_CONVERTERS[base] for base in kind.__mro__ if base in _CONVERTERS), _refuse)


_CONVERTERS: dict[type, Callable[[Any, int], Any]] = {
    list: _convert_list,
    tuple: _convert_list,
    dict: _convert_dict,
    MultiValueDict: _refuse,  # as a plain dictionary it would lose values
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


def _restore(item: dict[str, Any]) -> Any:
    if TAG not in item:
        return item
    try:
        [(kind, *values)] = item.values()
        if kind not in _RESTORERS:
            parts("argument_kinds")  # each adds its kind when it is loaded
        return _RESTORERS[kind](*values)
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise ValueError(f"a value tagged {TAG} is malformed ({type(error).__name__}).") from error


def add_kind(name: str, kind: type, write: Callable[[Any], Iterable[Any]]) -> None:
    """Let values of a class be written, as so many parts of which the class makes them again."""
    _CONVERTERS[kind] = lambda value, depth: _tagged(name, *write(value))
    _RESTORERS[name] = kind


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


def _kind_text(kind: type) -> str:
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{'an' if name.lstrip('_')[:1] in 'aeioAEIO' else 'a'} {name}"


def _quoted(name: str) -> str:
    # Escaped unless it is printable: messages are written to logs and terminals.
    return json.dumps(name[:60], ensure_ascii=not name.isprintable())


# -- writing and reading text

_INTEGERS = frozenset({int})
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_write = c_make_encoder and c_make_encoder(None, _JSON.default, encode_basestring, None, ":", ",", False, False, False)
_encode_sorted = json.JSONEncoder(allow_nan=False, check_circular=False, sort_keys=True).encode


def _to_text(value: Any) -> str:
    """Raises ValueError for NaN, for lone surrogates, and for integers longer than Python's limit."""
    # JSONEncoder.encode() creates the encoder in C for each call, which takes as long as all the rest.
    text = "".join(_write(value, 0)) if _write else _JSON.encode(value)
    if not text.isascii():
        text.encode()
    return text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON.")


_TAG_IN_TEXT = f'"{TAG}"'
_read = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
_read_tagged = json.JSONDecoder(parse_constant=_refuse_constant, object_hook=_restore).raw_decode


# -- error messages: a second, slow pass finds the path of the first bad value, so that the fast pass need not track it

_Path = tuple[Any, ...]


def _find_trouble(value: Any, where: _Path, depth: int) -> tuple[_Path, str] | None:
    """The path of the first value that cannot be written as JSON, and what is wrong with it."""
    encoder = _converter_of(type(value))
    items: Iterable[tuple[Any, Any]]
    if encoder is _convert_list:
        items = enumerate(value)
    elif encoder is _convert_dict:
        items = value.items()
    else:
        trouble = _trouble_of(value)
        return (where, trouble) if trouble else None
    if depth >= MAX_DEPTH:
        return where, _TOO_DEEP
    for key, item in items:
        if encoder is _convert_dict and (trouble := _key_trouble(key)):
            return where, trouble
        if found := _find_trouble(item, (*where, key), depth + 1):
            return found
    return None


def _trouble_of(value: Any) -> str | None:
    """What is wrong with a value that is not a list or dictionary, or None."""
    try:
        _to_text(_convert(value, 0))
    except _Refused as refused:
        return str(refused)
    except UnicodeEncodeError:
        return f"holds {_SURROGATE}"
    except ValueError as error:
        if issubclass(type(value), float):
            return f"is {float.__repr__(value)}, which JSON does not know. Pass None or a string instead."
        return f"cannot be written as text: {error}"
    return None


def _argument_text(where: _Path, names: Sequence[str]) -> str:
    match where:
        case ("args", int(number), *path):
            # An argument in *args has no name, only a number.
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


class DisplayEncoder(DjangoJSONEncoder):
    """Writes arguments and results as JSON for people. What it writes is not read back."""

    def default(self, o: Any) -> Any:
        # Django refuses a time with a time zone, but an argument of a job may be one.
        return o.isoformat() if isinstance(o, time) else super().default(o)
