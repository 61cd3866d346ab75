"""rtq_cancel: take jobs out before they run."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_rtq.broker.inspector import get_inspector
from django_rtq.exceptions import JobError
from django_rtq.management.printable import count, number, one_line
from django_rtq.management.rtq_command import RTQCommand
from django_rtq.management.typed_names import job_id


class Command(RTQCommand):
    help = (
        "Cancel jobs that are queued, scheduled or waiting for their next attempt, in whatever queue they "
        "are. A job that runs is not stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 all were cancelled; 1 some were not (standard error says which and why), or Redis "
            "did not answer; 2 wrong usage."
        )
        parser.add_argument("ids", nargs="+", type=job_id, metavar="ID", help="The id of a job.")

    def handle(self, *args: Any, **options: Any) -> None:
        inspector, failed = get_inspector(), 0
        wanted = list(dict.fromkeys(options["ids"]))
        for name in wanted:
            try:
                inspector.cancel(name)
            except JobError as error:
                failed += 1
                self.stderr.write(one_line(error))
            else:
                if options["verbosity"]:
                    self.stdout.write(f"Cancelled job {name}.")
        if failed:
            raise CommandError(f"{number(failed)} of {count(len(wanted), 'job')} could not be cancelled.")
