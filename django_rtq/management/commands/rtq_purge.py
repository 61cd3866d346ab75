"""manage.py rtq_purge: delete all waiting jobs of a queue."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_rtq.exceptions import BrokerError
from django_rtq.inspector.inspector import Inspector, get_inspector
from django_rtq.management.command import INTERRUPTED, RTQCommand
from django_rtq.management.output import ProgressLine, as_json, count, one_line
from django_rtq.management.prompts import check_interactive, confirm, known_queues


class Command(RTQCommand):
    help = (
        "Delete all queued, scheduled and retrying jobs of a queue. Running jobs and dead letters stay. Jobs that are "
        "enqueued meanwhile are deleted too; stop their producers first, if there are many."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 no job waits any more; 1 not confirmed, unknown queue, or Redis did not answer (some jobs "
            "may have been deleted before); 2 wrong usage; 130 stopped with Ctrl-C."
        )
        parser.add_argument("queue", metavar="QUEUE", help="The queue to empty.")
        parser.add_argument(
            "--no-input", "--noinput", action="store_false", dest="interactive", help="Do not ask for confirmation."
        )
        parser.add_argument("--json", action="store_true", help='Print {"queue": ..., "purged": n}.')

    def handle(self, *args: Any, **options: Any) -> None:
        if options["interactive"]:
            check_interactive()
        inspector = get_inspector()
        (queue,) = known_queues(inspector, [options["queue"]])
        (details,) = inspector.queues.details([queue])
        waiting = details.queued + details.scheduled + details.retrying
        if waiting and options["interactive"]:
            confirm(
                self.stderr,
                f"This deletes {count(waiting, 'waiting job')} of queue {queue}. "
                "Type the name of the queue to continue:",
                expected=queue,
            )
        purged = self._purge(inspector, queue, waiting, shown=options["verbosity"] > 0)
        if options["json"]:
            self.stdout.write(as_json({"queue": queue, "purged": purged}))
        elif options["verbosity"]:
            self.stdout.write(
                f"Purged {count(purged, 'job')} from queue {queue}."
                if purged
                else f"No job waits in queue {queue}: nothing was deleted."
            )

    def _purge(self, inspector: Inspector, queue: str, waiting: int, *, shown: bool) -> int:
        purged = 0
        try:
            with ProgressLine(self.stderr, "Purged", waiting, shown=shown) as progress:
                while step := inspector.purge(queue):
                    purged += step
                    progress.show(purged)
        except (BrokerError, KeyboardInterrupt) as error:
            reason = one_line(error) or "Stopped."
            raise CommandError(
                f"{reason} Before that, {count(purged, 'job')} of queue {queue} had been purged.",
                returncode=INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1,
            ) from error
        return purged
