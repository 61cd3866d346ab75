"""How what jobs brought along is shown: escaped, and cut. Its secrets are hidden before: see redaction.py.

It came from users and from failures. Templates escape what is HTML; here goes what would still deceive the eye,
such as marks that turn the direction of writing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import time
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from django_rtq.exceptions import TaskNotFound
from django_rtq.inspector.details import JobDetails
from django_rtq.tasks.registry import get_task

MAX_VALUE_LENGTH = 10_000  # characters of one argument, result or traceback
_PRINTED = "\n\t"


def clean_text(text: object, most: int = MAX_VALUE_LENGTH) -> str:
    """The text with all that does not print escaped, cut to `most` characters."""
    # Cut first: a message may be a megabyte long.
    whole = str(text)
    short = whole[: most + 1]
    if not short.isprintable():
        short = "".join(c if c.isprintable() or c in _PRINTED else _escaped(c) for c in short)
    return short if len(short) <= most and len(whole) <= most else f"{short[:most]}…"


def pretty_json(value: Any, most: int = MAX_VALUE_LENGTH) -> str:
    """The value as indented JSON, cut."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, cls=_Encoder)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return clean_text(text, most)


def named_arguments(job: JobDetails) -> list[tuple[str, Any]]:
    """The arguments of a redacted job by the names of the task's parameters."""
    names = list(parameter_names(job.task)[: len(job.args)])
    names += [str(place + 1) for place in range(len(names), len(job.args))]
    kwargs: Any = job.kwargs  # what lies in Redis may be anything
    pairs = [*zip(names, job.args, strict=True), *(kwargs.items() if isinstance(kwargs, dict) else [("**", kwargs)])]
    return [(clean_text(name, 200), value) for name, value in pairs]


def parameter_names(task: str) -> Sequence[str]:
    """What the parameters of a task are called; nothing, when this process does not know it."""
    try:
        return get_task(task).parameter_names
    except TaskNotFound:
        return ()


def short_id(job_id: str) -> str:
    """The end of a long id: what tells jobs apart that were made in the same moment."""
    text = clean_text(job_id, 300)
    return f"…{text[-12:]}" if len(text) > 20 else text


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


class _Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        # Django refuses a time with a zone; an argument may be one.
        return o.isoformat() if isinstance(o, time) else super().default(o)
