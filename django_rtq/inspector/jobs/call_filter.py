"""Compares arguments and words with those of a job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from typing import Any

from django_rtq.inspector.details import JobDetails
from django_rtq.jobs import serializer

_TAGS = ("date", "datetime", "time", "decimal", "uuid")  # see jobs/serializer.py

Leaf = tuple[tuple[str, ...], Any]  # names from the outermost on, and a value that is no container


def argument_lines(path: str, value: str, places: Mapping[str, int]) -> str:
    """An argument, as scripts take it: see read_call() in lua/lib/call_filter.lua. `places`: task -> position."""
    quoted = serializer.dumps(value)
    values = [quoted, value, *(f'{{"$rtq":["{tag}",{quoted}' for tag in _TAGS)]
    lines = [f"a{serializer.dumps(path.rpartition('.')[2])}:", *(f"v{text}" for text in values if "\n" not in text)]
    return "".join(f"{line}\n" for line in (*lines, *(f"p{place} {task}" for task, place in places.items())))


def words_lines(words: Iterable[str]) -> str:
    """Words, as scripts take them, each as it is and as it is written in JSON."""
    lines: list[str] = []
    for word in filter(None, words):
        texts = dict.fromkeys((word, serializer.dumps(word)[1:-1]))
        lines += ["w", *(f"s{text}" for text in texts if "\n" not in text)]
    return "".join(f"{line}\n" for line in lines)


def is_written(value: Any, text: str) -> bool:
    """Whether a person writes the value like this: 42, true, null, Ann, 2026-01-31."""
    return _written(value) == text


def fits_path(names: tuple[str, ...], path: str) -> bool:
    """Whether the path is this one, or the end of it."""
    wanted = tuple(path.split("."))
    return names[-len(wanted) :] == wanted


def named_leaves(job: JobDetails, positions: Mapping[str, Mapping[str, int]]) -> Iterator[Leaf]:
    """The arguments of a job by name. Of positional ones those that `positions` names; items of lists have no name."""
    args, kwargs = job.args, job.kwargs
    if isinstance(kwargs, dict):
        yield from _leaves((), kwargs)
    if isinstance(args, list):
        yield from _leaves((), args)  # dictionaries in them
        for name, places in positions.items():
            place = places.get(job.task, len(args))
            if place < len(args):
                yield from _leaves((name,), args[place])


def has_word(job: JobDetails, word: str) -> bool:
    """Whether the word is anywhere in what lists show of a job."""
    kind, message = job.newest_error
    if any(word in text for text in (job.id, job.task, job.client, kind, message)):
        return True
    return any(word in _written(part) for value in (job.args, job.kwargs) for part in _parts(value))


def _leaves(names: tuple[str, ...], value: Any) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves((*names, str(name)), item)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict | list):
                yield from _leaves(names, item)
    elif names:
        yield names, value


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
