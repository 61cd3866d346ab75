"""What the commands have in common: how they end when something is wrong."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from django_rtq.exceptions import RTQError
from django_rtq.management.printable import one_line

WRONG_USAGE = 2  # as argparse has it
INTERRUPTED = 130  # as shells have it: 128 + SIGINT
PIPE_CLOSED = 141  # 128 + SIGPIPE


class RTQCommand(BaseCommand):
    """A command about queues. Our errors end it in one sentence, without a traceback."""

    # Whoever looks after a sick system needs no database, and no other app, to be well.
    requires_system_checks = []

    def run_from_argv(self, argv: list[str]) -> None:
        """The command line's entry. Ctrl-C and a reader that went away (`| head`) get no traceback."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The name of a client may have letters that this terminal has not.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            super().run_from_argv(argv)
            sys.stdout.flush()
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # Else Python tries to write the rest once more when it exits, and complains.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(PIPE_CLOSED)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except RTQError as error:
            raise CommandError(one_line(error)) from error
