"""Output of commands: numbers, tables, JSON, and the progress line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from unicodedata import combining, east_asian_width

from django.core.management.base import OutputWrapper
from django.utils.timezone import localtime
from django.utils.translation import override

from django_rtq.console.formatting import format_duration
from django_rtq.core.commands.command import one_line
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
    return {name: getattr(item, name) for name in names}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; numbers are aligned right."""

    title: str
    cell: Callable[[Any], object]  # of an item
    right: bool = False


LEAST_WIDTH = 8  # of a column that is cut


def table(columns: Sequence[Column], items: Iterable[Any], width: int | None = None) -> list[str]:
    """The lines of a table, the headings first, each of at most `width` characters if the texts can be cut so far.

    The first column, which names the item, and numbers are not cut.
    """
    lines = [[column.title for column in columns]]
    lines += ([_cell(column.cell(item)) for column in columns] for item in items)
    widths = [max(map(_width, cells)) for cells in zip(*lines, strict=True)]
    if width is not None:
        _narrow(widths, columns, width)
    return ["  ".join(map(_padded, line, widths, [column.right for column in columns])).rstrip() for line in lines]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return number(value) if isinstance(value, int) else one_line(value)


def _narrow(widths: list[int], columns: Sequence[Column], most: int) -> None:
    """Take the widest of the texts away from, until all columns fit or none can be cut further."""
    texts = [i for i, column in enumerate(columns) if i and not column.right]
    excess = sum(widths) + 2 * (len(widths) - 1) - most
    while excess > 0 and texts:
        widest = max(texts, key=widths.__getitem__)
        if widths[widest] <= max(LEAST_WIDTH, len(columns[widest].title)):
            texts.remove(widest)
        else:
            widths[widest] -= 1
            excess -= 1


def _padded(cell: str, width: int, right: bool) -> str:
    if _width(cell) > width:
        cell = cell[: 2 * width]  # it may be long
        while _width(cell) > width - 3:
            cell = cell[:-1]
        cell += "..."
    space = " " * (width - _width(cell))
    return space + cell if right else cell + space


def _width(cell: str) -> int:
    """Columns on a terminal: most East Asian characters take two, combining accents none."""
    if cell.isascii():
        return len(cell)
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in cell)


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
