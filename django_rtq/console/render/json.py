"""Sheets as JSON: what a page shows, with raw values."""

from __future__ import annotations

from typing import Any

from django_rtq.console.render.sheet import Row, Sheet


def as_dict(sheet: Sheet[Row], row: Row, *, of_shards: bool = False) -> dict[str, Any]:
    """A row: its columns, and what else is known of it. `of_shards`: all shards were read."""
    columns = {column.name: column.raw(row) for column in sheet.columns if of_shards or not column.is_of_shards}
    return {**columns, **sheet.facts(row)}
