"""Sheets as tables on a terminal, in English."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django_rtq.console import output
from django_rtq.console.render.column import Column
from django_rtq.console.render.sheet import Row, Sheet

NOTHING: tuple[Any, ...] = (None, "", [])


def columns(sheet: Sheet[Row], rows: Sequence[Row], *, of_shards: bool = False) -> list[output.Column]:
    """The columns of a table of these rows: those that pages show small only if a row has something there.

    `of_shards`: all shards were read.
    """
    shown = (column for column in sheet.columns if of_shards or not column.is_of_shards)
    return [
        output.Column(str(column.title or column.name).upper(), partial(_cell, column), right=column.kind.is_number)
        for column in shown
        if not column.under or any(column.of(row) not in NOTHING for row in rows)
    ]


def _cell(column: Column, row: Any) -> str:
    value = column.of(row)
    return "-" if value in NOTHING else column.kind.plain(value)
