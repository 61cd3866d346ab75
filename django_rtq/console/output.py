"""Output of commands: numbers, JSON, and the progress line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.core.management.base import OutputWrapper
from django.utils.timezone import localtime
from django.utils.translation import override

from django_rtq.console.formatting import format_duration
from django_rtq.core.jobs.serializer import DisplayEncoder
from django_rtq.databases.clocks import utc_now


def number(value: int) -> str:
    """1234 as 1,234."""
    return f"{value:,}"


def count(value: int, singular: str, plural: str | None = None) -> str:
    """A number and its noun: 1 job, 1,234 jobs."""
    return f"{number(value)} {singular if value == 1 else plural or singular + 's'}"


@override("en")
def duration(seconds: float | None) -> str:
    """A duration, in English; "-" for None."""
    return "-" if seconds is None else format_duration(seconds)


def as_json(value: Any) -> str:
    """The value as one line of JSON; dates, decimals and the like as Django writes them."""
    return json.dumps(value, cls=DisplayEncoder)


def ago(at: datetime | None) -> str:
    """How long ago a moment was, or in how long it is; "-" for None."""
    if at is None:
        return "-"
    seconds = (utc_now() - at).total_seconds()
    text = duration(max(1.0, abs(seconds)))
    return f"{text} ago" if seconds >= 0 else f"in {text}"


def on_clock(at: datetime | None) -> str:
    """A moment, to the second; "-" for None."""
    return localtime(at).isoformat(sep=" ", timespec="seconds") if at else "-"


def facts(item: object, names: Iterable[str]) -> dict[str, Any]:
    """These attributes, for JSON."""
    values = ((name, getattr(item, name)) for name in names)
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values}


class ProgressLine:
    """Shows how far a long command is, if stderr is a terminal. A context manager; the first show() prints first."""

    def __init__(self, out: OutputWrapper, text: str, total: int | None = None, *, shown: bool = True) -> None:
        self._out = out
        self._text = text
        self._of_total = "" if total is None else f" of {number(total)}"
        self._shown = shown and out.isatty()
        self._width = 0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._width:
            self._write(f"\r{' ' * self._width}\r")

    def show(self, done: int) -> None:
        """Show that so many are done. May be called very often."""
        if self._shown:
            line = f"{self._text}: {number(done)}{self._of_total}"
            self._write(f"\r{line:<{self._width}}")
            self._width = len(line)

    def _write(self, text: str) -> None:
        # With an own style: Django prints stderr in red otherwise.
        self._out.write(text, style_func=str, ending="")
        self._out.flush()
