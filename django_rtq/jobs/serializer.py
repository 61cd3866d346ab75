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

import json
from collections.abc import Iterable, Sequence
from datetime import time
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any, NoReturn

from django.core.serializers.json import DjangoJSONEncoder

from django_rtq.exceptions import PayloadError, PayloadTooLarge, Unserializable
from django_rtq.jobs.json_types import (
    MAX_DEPTH,
    SURROGATE,
    TAG,
    TOO_DEEP,
    Refused,
    convert,
    convert_dict,
    convert_list,
    converter_of,
    key_trouble,
    quoted,
    restore,
)


def dumps(value: Any, *, what: str = "value", in_order: bool = False) -> str:
    """The value as compact JSON text. ``what`` names it in messages; with ``in_order``, equal values get equal texts.

    Raises Unserializable, which says where in the value the problem is and what to pass instead.
    """
    try:
        return (_encode_sorted if in_order else _to_text)(convert(value, 0))
    except (Refused, ValueError) as error:
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
            call["args"] = convert_list(args, 0)
        if kwargs:
            call["kwargs"] = convert_dict(kwargs, 0)
        return _to_text(call)[1:-1]
    except (Refused, ValueError) as error:
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


def check_size(task: str, subject: str, text: str, limit: int, advice: str) -> None:
    """Raises PayloadTooLarge for JSON of more bytes than RTQ["MAX_PAYLOAD_BYTES"]. `subject`: "the result has"."""
    if len(text) * 4 <= limit:
        return  # a character has at most four bytes, and to count them takes longer
    size = len(text.encode())
    if size > limit:
        raise PayloadTooLarge(
            f'{task}: {subject} {size:,} bytes as JSON, but RTQ["MAX_PAYLOAD_BYTES"] is {limit:,}. {advice}'
        )


def unquoted(text: str) -> str:
    """The value of a JSON string, given without its quotes, that may have been cut off anywhere."""
    while "\\" in text:
        try:
            return str(json.loads(f'"{text}"'))
        except ValueError:
            text = text[:-1]
    return text


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
_read_tagged = json.JSONDecoder(parse_constant=_refuse_constant, object_hook=restore).raw_decode


# Error messages: a second, slow pass finds the path of the first bad value, so that the fast pass need not track it.

_Path = tuple[Any, ...]


def _find_trouble(value: Any, where: _Path, depth: int) -> tuple[_Path, str] | None:
    """The path of the first value that cannot be written as JSON, and what is wrong with it."""
    encoder = converter_of(type(value))
    items: Iterable[tuple[Any, Any]]
    if encoder is convert_list:
        items = enumerate(value)
    elif encoder is convert_dict:
        items = value.items()
    else:
        trouble = _trouble_of(value)
        return (where, trouble) if trouble else None
    if depth >= MAX_DEPTH:
        return where, TOO_DEEP
    for key, item in items:
        if encoder is convert_dict and (trouble := key_trouble(key)):
            return where, trouble
        if found := _find_trouble(item, (*where, key), depth + 1):
            return found
    return None


def _trouble_of(value: Any) -> str | None:
    """What is wrong with a value that is not a list or dictionary, or None."""
    try:
        _to_text(convert(value, 0))
    except Refused as refused:
        return str(refused)
    except UnicodeEncodeError:
        return f"holds {SURROGATE}"
    except ValueError as error:
        if issubclass(type(value), float):
            return f"is {float.__repr__(value)}, which JSON does not know. Pass None or a string instead."
        return f"cannot be written as text: {error}"
    return None


def _argument_text(where: _Path, names: Sequence[str]) -> str:
    match where:
        case ("args", int(number), *path):
            # An argument in *args has no name, only a number.
            name = quoted(names[number]) if number < len(names) else str(number + 1)
        case ("kwargs", str(key), *path):
            name = quoted(key)
        case ("kwargs",):
            return "the dictionary of keyword arguments"
        case _:
            return "the call"
    return f"argument {name}{' at ' if path else ''}{_path_text(path)}"


def _path_text(where: Sequence[Any]) -> str:
    steps = [f"[{quoted(key) if isinstance(key, str) else key}]" for key in where]
    return "".join(steps[:8]) + ("…" if steps[8:] else "")


class DisplayEncoder(DjangoJSONEncoder):
    """Writes arguments and results as JSON for people. What it writes is not read back."""

    def default(self, o: Any) -> Any:
        # Django refuses a time with a time zone, but an argument of a job may be one.
        return o.isoformat() if isinstance(o, time) else super().default(o)
