"""manage.py rtq_pause: pause queues."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_rtq.inspector.inspector import get_inspector
from django_rtq.management.command import RTQCommand
from django_rtq.management.prompts import known_queues


class Command(RTQCommand):
    help = (
        "Pause queues: jobs can still be enqueued and running jobs finish, but no worker starts another one "
        "until rtq_resume."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 the queues are paused; 1 a queue is unknown (then none is paused), or "
            "Redis did not answer; 2 wrong usage."
        )
        parser.add_argument("queues", nargs="+", metavar="QUEUE", help="A queue to pause.")

    def handle(self, *args: Any, **options: Any) -> None:
        inspector = get_inspector()
        for name in known_queues(inspector, options["queues"]):
            changed = inspector.pause(name)
            if options["verbosity"]:
                self.stdout.write(
                    f"Queue {name} is paused. Resume it with  python manage.py rtq_resume {name}"
                    if changed
                    else f"Queue {name} was paused already."
                )
