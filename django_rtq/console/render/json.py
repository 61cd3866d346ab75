"""Sheets as JSON: what a page shows, with raw values."""

from __future__ import annotations

from typing import Any

from django_rtq.console.render.sheet import Row, Sheet


def as_dict(sheet: Sheet[Row], row: Row, *, of_shards: bool = False) -> dict[str, Any]:
    """A row: its columns, and what else is known of it. `of_shards`: all shards were read."""
    known = sheet.facts(row)
    columns = (each for each in sheet.columns if (of_shards or not each.is_of_shards) and each.name not in known)
    return {**{column.name: column.raw(row) for column in columns}, **known}
