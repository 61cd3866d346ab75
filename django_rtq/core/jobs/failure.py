"""Stored failures of a job: the only module that reads and writes them.

One JSON object a line, the newest last; scripts keep the last five (add_error in lua/lib/failures.lua) and write one
themselves for a crash (lua/lib/reclaim.lua). Scripts compare "error_class" and "error" without parsing the JSON.
"""

from __future__ import annotations

import json
import linecache
import re
import traceback
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any

from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.job import moment
from django_rtq.core.validation import is_number

LONGEST_SHORT_ERROR = 100
LONGEST_MESSAGE = 10_000  # characters of the text of an error, and of each of its notes
_TEXTS = ("worker", "error_class", "error", "traceback", "version")
#: What is stored of a run that failed: when it ended (ms), for how long it ran, its number, …
FAILURE = dict[str, Any](at=0, seconds=0.0, attempt=0, worker="", error_class="", error="", traceback="")
_USUAL = {"together": 1, "version": ""}  # jobs of the call, and version of the project: not stored
_CLASS = re.compile(r'"error_class":"((?:[^"\\]|\\.)*)')
_MESSAGE = re.compile(r'"error":"((?:[^"\\]|\\.)*)')


def write_failure(**known: Any) -> str:
    """The line about a run that failed, without the line break, by the names of FAILURE."""
    values = FAILURE | known
    return serializer.dumps({name: value for name, value in values.items() if value != _USUAL.get(name)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A stored failure, read for pages and commands."""

    number: int | None  # from 1
    worker: str
    started_at: datetime | None  # None: not known, as for a crash
    ended_at: datetime | None
    seconds: float | None
    error_class: str
    error: str
    traceback: str
    together: int  # how many jobs the call of the function had
    version: str  # of the project; "": not known

    @classmethod
    def read(cls, failure: Mapping[str, Any]) -> Attempt:
        """From a failure as read_failures() returns it. Never raises, whatever its values are."""
        at, seconds, number = (_number(failure.get(name)) for name in ("at", "seconds", "attempt"))
        return cls(
            number=None if number is None else int(number),
            started_at=None if at is None or seconds is None else moment(int(at - seconds * 1000)),
            ended_at=None if at is None else moment(int(at)),
            seconds=seconds,
            together=int(_number(failure.get("together")) or 1),
            **{name: str(failure.get(name) or "") for name in _TEXTS},
        )


def shorten_failure(line: bytes) -> bytes:
    """The line with a short message and no traceback."""
    failure = serializer.loads(line)
    return serializer.dumps({**failure, "error": failure["error"][:LONGEST_SHORT_ERROR], "traceback": ""}).encode()


def read_failures(lines: bytes) -> list[dict[str, Any]]:
    """The stored failures of a job, the newest last. A line that is not JSON becomes an error message."""
    failures = []
    for line in lines.splitlines():
        try:
            failure = json.loads(line)
        except ValueError:
            failure = None
        failures.append(failure if isinstance(failure, dict) else {"error": line.decode(errors="replace")})
    return failures


def read_cut_failure(line: bytes) -> dict[str, Any]:
    """Class and message of a failure of which only the first bytes are known; "" for what is cut off."""
    text = line.decode(errors="replace")
    error_class, error = _CLASS.search(text), _MESSAGE.search(text)
    return {
        "error_class": serializer.unquoted(error_class[1]) if error_class else "",
        "error": serializer.unquoted(error[1]) if error else "",
    }


def _number(value: Any) -> float | None:
    return float(value) if is_number(value) else None


def format_error(
    error: BaseException,
    entry: TracebackType | None,
    *,
    max_frames: int | None = None,
) -> str:
    """The error as text, with its traceback from `entry` on, its notes, causes and contexts.

    As Python does it, without the carets below the lines of source. Python compiles a line to find out where its carets
    go: for a job that fails, that took most of the time.

    Of each traceback the last `max_frames` are shown, and of each message the first LONGEST_MESSAGE characters: one may
    hold a whole response. Raises what the exception's own `__str__` raises.
    """
    # With limit=0 Python reads no frames.
    whole = traceback.TracebackException(type(error), error, entry, limit=0)
    open_ends: list[tuple[Any, Any, TracebackType | None]] = [(whole, error, entry)]
    while open_ends:
        part, of_error, at = open_ends.pop()
        part.stack = _stack(at, max_frames)
        _cut_messages(part)
        below = list(zip(getattr(part, "exceptions", None) or (), getattr(of_error, "exceptions", ()), strict=False))
        below += [(part.__cause__, of_error.__cause__), (part.__context__, of_error.__context__)]
        open_ends += [(one, its_error, its_error.__traceback__) for one, its_error in below if one is not None]
    return "".join(whole.format())


def _cut_messages(part: Any) -> None:
    def cut(text: Any) -> Any:
        return f"{text[:LONGEST_MESSAGE]}…" if isinstance(text, str) and len(text) > LONGEST_MESSAGE else text

    for name in ("_str", "msg"):  # the second one is a SyntaxError's
        if hasattr(part, name):
            setattr(part, name, cut(getattr(part, name)))
    if isinstance(notes := getattr(part, "__notes__", None), list):
        part.__notes__ = list(map(cut, notes))


def _stack(entry: TracebackType | None, max_frames: int | None) -> traceback.StackSummary:
    frames: deque[traceback.FrameSummary] = deque(maxlen=max_frames)
    for frame, line_number in traceback.walk_tb(entry):
        code = frame.f_code
        linecache.lazycache(code.co_filename, frame.f_globals)
        frames.append(traceback.FrameSummary(code.co_filename, line_number, code.co_name, lookup_line=False))
    return traceback.StackSummary(frames)
