"""Looks for words in a job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date, time
from typing import Any

from django_rtq.inspector.details import JobDetails
from django_rtq.jobs import serializer


def words_lines(words: Iterable[str]) -> str:
    """Words, as scripts take them, each as it is and as it is written in JSON."""
    lines: list[str] = []
    for word in filter(None, words):
        texts = dict.fromkeys((word, serializer.dumps(word)[1:-1]))
        lines += ["w", *(f"s{text}" for text in texts if "\n" not in text)]
    return "".join(f"{line}\n" for line in lines)


def has_word(job: JobDetails, word: str) -> bool:
    """Whether the word is anywhere in what lists show of a job."""
    kind, message = job.newest_error
    if any(word in text for text in (job.id, job.task, job.client, kind, message)):
        return True
    return any(word in _written(part) for value in (job.args, job.kwargs) for part in _parts(value))


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
