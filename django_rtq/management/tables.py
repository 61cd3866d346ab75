"""Tables of text with aligned columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width


@dataclass(frozen=True, slots=True)
class Column:
    """One column; numbers stand on the right."""

    title: str
    right: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, the headings first. Cells must be on one line: see printable.py."""
    lines = [tuple(column.title for column in columns), *map(tuple, rows)]
    widths = [max(map(_width, cells)) for cells in zip(*lines, strict=True)]
    return ["  ".join(map(_padded, line, widths, [column.right for column in columns])).rstrip() for line in lines]


def _padded(cell: str, width: int, right: bool) -> str:
    space = " " * (width - _width(cell))
    return space + cell if right else cell + space


def _width(cell: str) -> int:
    """Places on a terminal: most letters of East Asia take two, accents that follow their letter none."""
    if cell.isascii():
        return len(cell)
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in cell)
