"""Looks for a text anywhere in a job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, time
from typing import Any

from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails


def in_json(text: str) -> str:
    """How the text is written inside a string of JSON."""
    return serializer.dumps(text)[1:-1]


def spellings(text: str) -> str:
    """How the text may be written in a record or failure, a line each: in JSON, or as it is."""
    return "\n".join(dict.fromkeys((in_json(text), *([text] if "\n" not in text else ()))))


def has_text(job: JobDetails, text: str) -> bool:
    """Whether the text is anywhere in what lists show of a job."""
    kind, message = job.newest_error
    if any(text in part for part in (job.id, job.task, job.client, kind, message)):
        return True
    return any(text in _written(part) for value in (job.args, job.kwargs) for part in _parts(value))


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _parts(value: Any) -> Iterator[Any]:
    """Keys and values, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)
    else:
        yield value
