"""The base class of the commands: how they exit when something is wrong, and the place that they are about."""

from __future__ import annotations

import io
import math
import os
import sys
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, _ActionsContainer
from collections.abc import Callable
from typing import Any, TypeAlias
from unicodedata import category

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from django_rtq.core.broker.task_backends import UnknownPlace, named_place, place_of, shard_places
from django_rtq.exceptions import ConfigurationError, RTQError

WRONG_USAGE = 64  # EX_USAGE; 2, as argparse does, is what rtq --check says of something critical
INTERRUPTED = 130  # as shells do: 128 + SIGINT
PIPE_CLOSED = 141  # 128 + SIGPIPE

Options: TypeAlias = dict[str, Any]  # what argparse made of the command line


class RTQCommand(BaseCommand):
    """A command of django_rtq. Expected errors are printed as one sentence, without a traceback."""

    # These commands must work while the database or another app does not.
    requires_system_checks = []
    #: The help of --backend.
    backend_help = 'Look at the Redis of this backend in TASKS, if it has its own. Default: RTQ["REDIS"].'
    takes_shard = True  # whether it may be told to take one of RTQ["SHARDS"]
    verbosity = 1
    _is_parsed = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        for argument in (BACKEND.but(help=self.backend_help), *((SHARD,) if self.takes_shard else ())):
            argument.add_to(parser)
            for sub_parser in _sub_parsers(parser):  # after the action too; without a default that would overwrite it
                argument.but(default=SUPPRESS, help=SUPPRESS).add_to(sub_parser)
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        """Run from the command line. Ctrl-C and a closed pipe (`| head`) print no traceback."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The name of a client may have characters that this terminal cannot encode.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            super().run_from_argv(argv)
            sys.stdout.flush()
        except SystemExit as end:
            sys.exit(WRONG_USAGE if end.code and not self._is_parsed else end.code)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # Or else Python tries to flush the rest at exit, and prints an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(PIPE_CLOSED)

    def execute(self, *args: Any, **options: Any) -> str | None:
        self._is_parsed, self.verbosity = True, options.get("verbosity", 1)
        try:
            return super().execute(*args, **options)
        except UnknownPlace as error:
            raise CommandError(one_line(error), returncode=WRONG_USAGE) from error
        except RTQError as error:
            raise CommandError(one_line(error)) from error
        except DatabaseError as error:
            raise CommandError(f"The database did not answer: {one_line(error)}") from error

    def named_place(self, options: Options) -> str:
        """What it is about: the Redis of a backend; "#1": a shard; "": RTQ["REDIS"], or all shards."""
        backend, shard = options.get("backend", ""), options.get("shard")
        if shard is not None and backend:
            raise CommandError(
                'Give either a shard or --backend: shards are of RTQ["SHARDS"], and a backend has a Redis of its own.',
                returncode=WRONG_USAGE,
            )
        return named_place(backend if shard is None else f"#{shard}")

    def places(self, options: Options) -> list[str]:
        """The Redis of a backend, one shard, or all shards. Raises UnknownPlace."""
        if name := self.named_place(options):
            return [place_of(name)]
        try:
            return shard_places()
        except ConfigurationError:
            return [""]  # what is wrong is said, with an exit code, where the settings are needed


class Argument:
    """An argument of an action, as add_argument() of argparse takes it."""

    def __init__(self, *names: str, **options: Any) -> None:
        self.names, self.options = names, options

    def but(self, **options: Any) -> Argument:
        """The same with other options, such as another help."""
        return Argument(*self.names, **{**self.options, **options})

    def add_to(self, parser: _ActionsContainer) -> None:
        """Let the parser accept it."""
        parser.add_argument(*self.names, **self.options)


# What several commands accept, each with a help of its own where this one does not fit.
BACKEND = Argument("--backend", default="", metavar="ALIAS")
SHARD = Argument("--shard", type=int, metavar="NUMBER", help='Only this shard in RTQ["SHARDS"]. Default: all.')
QUEUES = Argument("--queues", metavar="A,B")


def one_line(text: object, most: int | None = None) -> str:
    """The text on one line, truncated to `most` characters. Characters that are not printable are escaped.

    Spaces of all kinds are plain ones: formatted numbers have some that do not break.

    Data in Redis comes from users and from errors: it must not move the cursor or add lines.
    """
    whole = str(text)
    # Truncate first: a message may be a megabyte long.
    short = whole if most is None else whole[: most + 1]
    if not short.isprintable():
        short = "".join(map(_shown, short))
    return short if most is None or len(short) <= most else short[: most - 3] + "..."


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return " " if category(character) == "Zs" else character.encode("unicode_escape").decode()


def seconds_from(least: float, most: float = math.inf) -> Callable[[str], float]:
    """The type of an argument that is a number of seconds in a range."""

    def seconds(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (least <= number <= most and number < math.inf):
            raise ArgumentTypeError(f"{text!r} is not a number of seconds, {least:g} or more.")
        return number

    return seconds


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """The type of an argument that is a number of things in a range."""

    def number(text: str) -> int:
        if not (text.isdecimal() and len(text) <= 100 and least <= int(text) <= most):
            raise ArgumentTypeError(f"{one_line(text, 60)!r} is not a whole number from {least} to {most:,}.")
        return int(text)

    return number


def _sub_parsers(parser: ArgumentParser) -> list[ArgumentParser]:
    return [each for action in parser._actions if isinstance(action.choices, dict) for each in action.choices.values()]
