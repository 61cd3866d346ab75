"""Asking a person before something is thrown away."""

from __future__ import annotations

import sys

from django.core.management.base import CommandError, OutputWrapper


def check_somebody_is_there() -> None:
    """Raises CommandError when nobody can answer a question."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandError("This would ask first, but nobody can answer here: add --no-input if it is meant.")


def confirm(out: OutputWrapper, question: str, expected: str) -> None:
    """Ask on stderr, so that stdout keeps to results. Raises CommandError for any other answer."""
    check_somebody_is_there()
    out.write(question, style_func=str, ending=" ")
    out.flush()
    try:
        answer = input()
    except (EOFError, KeyboardInterrupt):
        out.write("")
        answer = ""
    if answer.strip() != expected:
        raise CommandError("Nothing was thrown away.")
