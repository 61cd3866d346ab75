"""rtq_purge: throw away all jobs of a queue that wait."""

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
        "Throw away all jobs of a queue that wait: those that are queued, scheduled or waiting for their "
        "next attempt. Jobs that run, and dead letters, stay. Jobs that come in meanwhile are thrown away "
        "too; pause whoever makes them, if there are many."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 none waits any more; 1 it was not confirmed, the queue is unknown, or Redis did "
            "not answer (what was thrown away until then is gone); 2 wrong usage; 130 stopped with Ctrl-C."
        )
        parser.add_argument("queue", metavar="QUEUE", help="The queue to empty.")
        parser.add_argument(
            "--no-input", "--noinput", action="store_false", dest="interactive", help="Do not ask first."
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
                f"This throws away {count(waiting, 'waiting job')} of queue {queue}. "
                "Type the name of the queue to go on:",
                expected=queue,
            )
        purged = self._purge(inspector, queue, waiting, shown=options["verbosity"] > 0)
        if options["json"]:
            self.stdout.write(as_json({"queue": queue, "purged": purged}))
        elif options["verbosity"]:
            self.stdout.write(
                f"Threw away {count(purged, 'job')} of queue {queue}."
                if purged
                else f"No job waits in queue {queue}: nothing was thrown away."
            )

    def _purge(self, inspector: Inspector, queue: str, waiting: int, *, shown: bool) -> int:
        purged = 0
        try:
            with ProgressLine(self.stderr, "Thrown away", waiting, shown=shown) as progress:
                while step := inspector.purge(queue):
                    purged += step
                    progress.show(purged)
        except (BrokerError, KeyboardInterrupt) as error:
            reason = one_line(error) or "Stopped."
            raise CommandError(
                f"{reason} Until then {count(purged, 'job')} of queue {queue} had been thrown away.",
                returncode=INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1,
            ) from error
        return purged
