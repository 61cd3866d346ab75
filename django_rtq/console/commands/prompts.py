"""Input of commands: names and numbers as people type them, and confirmations."""

from __future__ import annotations

import getpass
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable

from django.core.management.base import CommandError, OutputWrapper

from django_rtq.console.reading.readers import Readers
from django_rtq.core.commands.command import one_line, whole_number
from django_rtq.core.tasks.calls import MAX_CLIENT_LENGTH, is_client_name
from django_rtq.core.tasks.registry import declared_queues
from django_rtq.core.validation import did_you_mean

positive = whole_number(1, 1_000_000_000)


def client_argument(text: str) -> str:
    """The type of an argument that is the name of a client; "" is the one without a name."""
    if not is_client_name(text):
        raise ArgumentTypeError(
            f"{one_line(text, 60)!r} is not the name of a client: these have at most {MAX_CLIENT_LENGTH} "
            "characters, all printable."
        )
    return text


def utf8_text(text: str) -> str:
    """The type of an argument that is any text: a shell may pass bytes that are none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentTypeError(f"{one_line(text, 60)!r} is not valid UTF-8.") from None
    return text


def system_user() -> str:
    """Who runs this command; "" in a container without a name for its user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def known_queues(readers: Readers, names: Iterable[str]) -> list[str]:
    """The names without duplicates. Raises CommandError for a queue neither declared nor used: it is likely a typo,
    unless a shard is silent, which may have it."""
    wanted = list(dict.fromkeys(names))
    known = sorted({*declared_queues(readers.place), *readers.queues.names()}) if wanted else []
    for name in wanted:
        if name not in known and not readers.silent:
            others = f" Known are: {', '.join(known[:20])}{', ...' if len(known) > 20 else ''}."
            hint = did_you_mean(name, known, otherwise=others if known else "", quoted=True)
            raise CommandError(f"No queue {one_line(repr(name), 100)} is declared, or has been used yet.{hint}")
    return wanted


def check_interactive() -> None:
    """Raises CommandError if nobody can answer: standard input is not a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandError(
            "Nobody can confirm this here, as standard input is no terminal: add --no-input if it is meant."
        )


def confirm(out: OutputWrapper, question: str, expected: str) -> None:
    """Ask on stderr, because stdout is for results. Raises CommandError for any other answer."""
    check_interactive()
    out.write(question, style_func=str, ending=" ")
    out.flush()
    try:
        answer = input()
    except (EOFError, KeyboardInterrupt):
        out.write("")
        answer = ""
    if answer.strip() != expected:
        raise CommandError("Not confirmed: nothing was changed.")
