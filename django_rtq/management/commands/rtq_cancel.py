"""manage.py rtq_cancel: cancel waiting jobs, and stop running ones."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_rtq.exceptions import JobError
from django_rtq.inspector.inspector import get_inspector
from django_rtq.jobs.job import CancelAnswer
from django_rtq.management.command import RTQCommand
from django_rtq.management.output import as_json, count, number, one_line
from django_rtq.management.prompts import job_id


class Command(RTQCommand):
    help = (
        "Cancel queued, scheduled and retrying jobs of any queue, and ask running jobs to stop. A job that was asked "
        "to stop never runs again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 all were cancelled or asked to stop; 1 some were not (see standard error), or Redis did not "
            "answer; 2 wrong usage."
        )
        parser.add_argument("ids", nargs="+", type=job_id, metavar="ID", help="The id of a job.")
        parser.add_argument(
            "--terminate",
            action="store_true",
            help="Kill the process of a running job, if it does not stop when asked. Other jobs of that process are "
            "queued again.",
        )
        parser.add_argument("--json", action="store_true", help="Print one line of JSON with the outcome for each id.")

    def handle(self, *args: Any, **options: Any) -> None:
        inspector = get_inspector()
        found: dict[str, str] = {}
        failed: dict[str, str] = {}
        for name in dict.fromkeys(options["ids"]):
            try:
                found[name] = inspector.cancel(name, terminate=options["terminate"])
            except JobError as error:
                failed[name] = one_line(error)
        if options["json"]:
            self.stdout.write(as_json({"jobs": found, "failed": failed}))
        else:
            self._report(found, failed, verbosity=options["verbosity"], terminate=options["terminate"])
        if failed:
            total = count(len(found) + len(failed), "job")
            raise CommandError(f"{number(len(failed))} of {total} could not be cancelled.")

    def _report(self, found: dict[str, str], failed: dict[str, str], *, verbosity: int, terminate: bool) -> None:
        asked = "Its process will be killed, if it still runs: job {}." if terminate else "Asked to stop: job {}."
        words = {CancelAnswer.CANCELLED: "Cancelled job {}.", CancelAnswer.ASKED: asked}
        for name, answer in found.items():
            if verbosity:
                self.stdout.write(words[CancelAnswer(answer)].format(name))
        for problem in failed.values():
            self.stderr.write(problem)
