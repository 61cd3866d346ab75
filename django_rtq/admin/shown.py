"""How what jobs brought along is shown: escaped, cut, and without its secrets.

It came from users and from failures. Templates escape what is HTML; here goes what would still deceive the eye,
such as marks that turn the direction of writing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import time
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter, get_exception_reporter_filter

from django_rtq.exceptions import TaskNotFound
from django_rtq.registry import get_task

LONGEST_VALUE = 10_000  # characters of one argument, result or traceback
HIDDEN = SafeExceptionReporterFilter.cleansed_substitute
_PRINTED = "\n\t"


def clean_text(text: object, most: int = LONGEST_VALUE) -> str:
    """The text with all that does not print escaped, cut to `most` characters."""
    # Cut first: a message may be a megabyte long.
    whole = str(text)
    short = whole[: most + 1]
    if not short.isprintable():
        short = "".join(c if c.isprintable() or c in _PRINTED else _escaped(c) for c in short)
    return short if len(short) <= most and len(whole) <= most else f"{short[:most]}…"


def pretty(value: Any, most: int = LONGEST_VALUE) -> str:
    """The value as indented JSON, cut."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, cls=_Encoder)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return clean_text(text, most)


def without_secrets(request: HttpRequest | None, value: Any, name: str = "") -> Any:
    """A copy in which the values of names like "password" and "token" are hidden, however deep they lie.

    Which names these are says the project, as it does for Django's error pages: DEFAULT_EXCEPTION_REPORTER_FILTER.
    """
    hide = getattr(get_exception_reporter_filter(request), "cleanse_setting", None)
    return value if hide is None else hide(name, value)


def arguments_of(request: HttpRequest | None, task: str, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """The arguments of a call by the names of the task's parameters, without their secrets."""
    given = args if isinstance(args, list) else [args]
    names = list(parameter_names(task)[: len(given)])
    names += [str(place + 1) for place in range(len(names), len(given))]
    pairs = [*zip(names, given, strict=True), *(kwargs.items() if isinstance(kwargs, dict) else [("**", kwargs)])]
    return [(clean_text(name, 200), without_secrets(request, value, name)) for name, value in pairs]


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
