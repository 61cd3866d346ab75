"""Columns as tables on a terminal, in English."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import combining, east_asian_width

from django_rtq.console.render.column import Column
from django_rtq.console.render.sheet import Row, Sheet
from django_rtq.core.commands.command import one_line

NOTHING: tuple[Any, ...] = (None, "", [])
LEAST_WIDTH = 8  # of a column that is cut


def columns(
    sheet: Sheet[Row], rows: Sequence[Row], *, of_shards: bool = False, names: Sequence[str] = ()
) -> list[Column]:
    """The columns of a table of these rows, what names a row first; those that are named, in that order.

    Those that pages show small are there only if a row has something in them. `of_shards`: all shards were read.
    """
    every = [*map(sheet.column, names)] or sorted(sheet.columns, key=lambda column: column.name != sheet.key)
    return [
        column
        for column in every
        if (of_shards or not column.is_of_shards)
        and (not column.under or any(column.of(row) not in NOTHING for row in rows))
    ]


def table(
    columns: Sequence[Column], items: Iterable[Any], width: int | None = None, *, in_full: bool = False
) -> list[str]:
    """The lines of a table, the headings first, each of at most `width` characters if the texts can be cut so far.

    The first column, which names the item, and numbers are not cut.
    """
    lines = [[_title(column) for column in columns]]
    lines += ([_cell(column, item, in_full=in_full) for column in columns] for item in items)
    widths = [max(map(_width, cells)) for cells in zip(*lines, strict=True)]
    if width is not None:
        _narrow(widths, columns, width)
    right = [column.kind.is_number for column in columns]
    return ["  ".join(map(_padded, line, widths, right)).rstrip() for line in lines]


def _title(column: Column) -> str:
    return str(column.title or column.name).upper()


def _cell(column: Column, row: Any, *, in_full: bool) -> str:
    value, kind = column.of(row), column.kind
    return "-" if value in NOTHING else one_line(((in_full and kind.in_full) or kind.plain)(value))


def _narrow(widths: list[int], columns: Sequence[Column], most: int) -> None:
    """Take the widest of the texts away from, until all columns fit or none can be cut further."""
    texts = [i for i, column in enumerate(columns) if i and not column.kind.is_number]
    excess = sum(widths) + 2 * (len(widths) - 1) - most
    while excess > 0 and texts:
        widest = max(texts, key=widths.__getitem__)
        if widths[widest] <= max(LEAST_WIDTH, len(_title(columns[widest]))):
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
