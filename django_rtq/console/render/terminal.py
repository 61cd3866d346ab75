"""Sheets as tables on a terminal, in English."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django_rtq.console import output
from django_rtq.console.render.column import Column
from django_rtq.console.render.sheet import Row, Sheet

NOTHING: tuple[Any, ...] = (None, "", [])


def columns(
    sheet: Sheet[Row], rows: Sequence[Row], *, of_shards: bool = False, in_full: bool = False
) -> list[output.Column]:
    """The columns of a table of these rows, what names a row first.

    Those that pages show small are there only if a row has something in them. `of_shards`: all shards were read.
    """
    shown = sorted(sheet.columns, key=lambda column: column.name != sheet.key)
    return [
        output.Column(
            str(column.title or column.name).upper(), partial(_cell, column, in_full), right=column.kind.is_number
        )
        for column in shown
        if (of_shards or not column.is_of_shards)
        and (not column.under or any(column.of(row) not in NOTHING for row in rows))
    ]


def _cell(column: Column, in_full: bool, row: Any) -> str:
    value, kind = column.of(row), column.kind
    return "-" if value in NOTHING else ((in_full and kind.in_full) or kind.plain)(value)
