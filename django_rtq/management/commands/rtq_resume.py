"""manage.py rtq_resume: resume paused queues."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_rtq.inspector.inspector import get_inspector
from django_rtq.management.command import RTQCommand
from django_rtq.management.output import one_line
from django_rtq.management.prompts import known_queues


class Command(RTQCommand):
    help = "Resume queues that were paused with rtq_pause or in the admin. Workers continue at once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 none of them is paused; 1 a queue is unknown (then none is resumed), or "
            "Redis did not answer; 2 wrong usage."
        )
        parser.add_argument("queues", nargs="+", metavar="QUEUE", help="A queue to resume; '*' is every queue.")
        parser.add_argument(
            "--client",
            action="append",
            default=[],
            metavar="NAME",
            help="Resume only this client. May be repeated. A paused client stays so when its queue is resumed.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        inspector = get_inspector()
        for name in known_queues(inspector, options["queues"]):
            for client in options["client"] or [None]:
                changed = inspector.resume(name) if client is None else inspector.limits.resume_client(name, client)
                what = f"queue {name}"
                if client is not None:
                    what = f"client {one_line(repr(client), 100)} in {what}"
                if options["verbosity"]:
                    self.stdout.write(f"Resumed {what}." if changed else f"{what[0].upper()}{what[1:]} was not paused.")
