"""Escapes and truncates untrusted data of jobs for display. Secrets are redacted before: see redaction.py.

The data comes from users and from error messages. Templates escape HTML; this module escapes what would still mislead
a reader, such as characters that change the direction of text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.serializer import DisplayEncoder
from django_rtq.core.tasks.registry import known_task

MAX_VALUE_LENGTH = 10_000  # characters of one argument, result or traceback
_PRINTED = "\n\t"


def clean_text(text: object, max_length: int = MAX_VALUE_LENGTH) -> str:
    """Escape non-printable characters and truncate to `max_length` characters."""
    # Truncate first: a message may be a megabyte long.
    whole = str(text)
    short = whole[: max_length + 1]
    if not short.isprintable():
        short = "".join(c if c.isprintable() or c in _PRINTED else _escaped(c) for c in short)
    return short if len(short) <= max_length and len(whole) <= max_length else f"{short[:max_length]}…"


def pretty_json(value: Any, max_length: int = MAX_VALUE_LENGTH) -> str:
    """The value as indented JSON, truncated."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, cls=DisplayEncoder)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return clean_text(text, max_length)


def named_arguments(job: JobDetails) -> list[tuple[str, Any]]:
    """The arguments of a redacted job, with the names of the task's parameters."""
    names = list(parameter_names(job.task)[: len(job.args)])
    names += [str(number + 1) for number in range(len(names), len(job.args))]
    kwargs: Any = job.kwargs  # Redis may hold any JSON
    pairs = [*zip(names, job.args, strict=True), *(kwargs.items() if isinstance(kwargs, dict) else [("**", kwargs)])]
    return [(clean_text(name, 200), value) for name, value in pairs]


def arguments_text(job: JobDetails, max_length: int = 80) -> str:
    """The first arguments of a redacted job in one line, truncated."""
    names = parameter_names(job.task)
    parts, length = [], 0
    for name, value in named_arguments(job):
        text = pretty_json(value, max_length).replace("\n", " ")
        parts.append(text if name.isdecimal() and name not in names else f"{name}={text}")
        length += len(parts[-1]) + 2
        if length > max_length:
            break
    return clean_text(", ".join(parts), max_length)


def parameter_names(task: str) -> Sequence[str]:
    """The names of a task's parameters. Empty if the task is not registered in this process."""
    registered = known_task(task)
    return () if registered is None else registered.call_signature.names


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
