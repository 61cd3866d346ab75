"""Names of queues and ids of jobs, as people type them."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable

from django.core.management.base import CommandError

from django_rtq.inspector.inspector import Inspector
from django_rtq.management.printable import one_line
from django_rtq.validation import did_you_mean


def job_id(text: str) -> str:
    """The type of an argument that is a job's id."""
    if not text or len(text) > 200 or not text.isprintable():
        raise ArgumentTypeError(f"{one_line(text, 60)!r} is not the id of a job.")
    return text


def known_queues(inspector: Inspector, names: Iterable[str]) -> list[str]:
    """The names, each once. Raises CommandError for one that was never used: it is likely a slip."""
    wanted, known = list(dict.fromkeys(names)), inspector.queues.names()
    for name in wanted:
        if name not in known:
            raise CommandError(f"No queue {one_line(repr(name), 100)} has been used yet.{_hint(name, known)}")
    return wanted


def _hint(name: str, known: list[str]) -> str:
    if not known:
        return " Nor has any other."
    names = f" Known are: {', '.join(known[:20])}{', ...' if len(known) > 20 else ''}."
    return did_you_mean(name, known, otherwise=names, quoted=True)
