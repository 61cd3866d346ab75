"""The base class of the commands: how they exit when something is wrong."""

from __future__ import annotations

import io
import os
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from django_rtq.broker.task_backends import view_backend
from django_rtq.exceptions import RTQError
from django_rtq.management.output import one_line

WRONG_USAGE = 2  # as argparse does
INTERRUPTED = 130  # as shells do: 128 + SIGINT
PIPE_CLOSED = 141  # 128 + SIGPIPE


class RTQCommand(BaseCommand):
    """A command of django_rtq. Expected errors are printed as one sentence, without a traceback."""

    # These commands must work while the database or another app does not.
    requires_system_checks = []
    #: The help of --backend ("": no such option), and whether get_inspector() is for the backend while it runs.
    backend_help = 'Look at the Redis of this backend in TASKS, if it has its own. Default: RTQ["REDIS"].'
    views_backend = True

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        if self.backend_help:
            parser.add_argument("--backend", default="", metavar="ALIAS", help=self.backend_help)
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        """Run from the command line. Ctrl-C and a closed pipe (`| head`) print no traceback."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The name of a client may have characters that this terminal cannot encode.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            super().run_from_argv(argv)
            sys.stdout.flush()
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # Or else Python tries to flush the rest at exit, and prints an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(PIPE_CLOSED)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            with view_backend(options.get("backend", "")) if self.views_backend else nullcontext():
                return super().execute(*args, **options)
        except RTQError as error:
            raise CommandError(one_line(error)) from error


def add_actions(
    parser: ArgumentParser, texts: Mapping[str, str], *, epilog: str | None = None, all_print_json: bool = False
) -> Iterator[tuple[str, ArgumentParser]]:
    """Add a sub-command for each action. Yields its name and its parser, which accepts Django's options as well.

    With `all_print_json`, each accepts --json, and so does the command before the action.
    """
    if all_print_json:
        parser.add_argument("--json", action="store_true", help="Print JSON. Also accepted after the action.")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    for name, text in texts.items():
        action = actions.add_parser(name, help=text, description=text, epilog=epilog)
        if all_print_json:  # without a default, which would overwrite an option before the action
            action.add_argument("--json", action="store_true", default=SUPPRESS, help="Print JSON.")
        yield name, action
        _accept_django_options(action)


def _accept_django_options(parser: ArgumentParser) -> None:
    """Accept Django's options after the action too, where most people write them.

    Without defaults, because those of a sub-parser would overwrite options before the action.
    """
    group = parser.add_argument_group("Django's options")
    group.add_argument("-v", "--verbosity", type=int, choices=range(4), default=SUPPRESS, help="0 silent, 2 more.")
    for name in ("--backend", "--settings", "--pythonpath"):
        group.add_argument(name, default=SUPPRESS, help=SUPPRESS)
    for name in ("--traceback", "--no-color", "--force-color"):
        group.add_argument(name, action="store_true", default=SUPPRESS, help=SUPPRESS)
