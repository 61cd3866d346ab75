"""Sheets as JSON: what a page shows, with raw values."""

from __future__ import annotations

from typing import Any

from django_rtq.console.render.sheet import Row, Sheet


def as_dict(sheet: Sheet[Row], row: Row) -> dict[str, Any]:
    """A row: its columns, and what else is known of it. The number of a shard is added where all shards are read."""
    columns = {column.name: column.raw(row) for column in sheet.columns if not column.is_of_shards}
    return {**columns, **sheet.facts(row)}
