"""manage.py rtq_pause: pause queues, or clients in them."""

from __future__ import annotations

import shlex
from typing import Any

from django.core.management.base import CommandParser

from django_rtq.inspector.inspector import get_inspector
from django_rtq.management.command import RTQCommand
from django_rtq.management.output import one_line
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
        parser.add_argument("queues", nargs="+", metavar="QUEUE", help="A queue to pause; '*' is every queue.")
        parser.add_argument(
            "--client", action="append", default=[], metavar="NAME", help="Pause only this client. May be repeated."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        inspector = get_inspector()
        for name in known_queues(inspector, options["queues"]):
            for client in options["client"] or [None]:
                changed = inspector.pause(name) if client is None else inspector.limits.pause_client(name, client)
                if options["verbosity"]:
                    self.stdout.write(_told(name, client, is_new=changed))


def _told(queue: str, client: str | None, *, is_new: bool) -> str:
    what, arguments = f"Queue {queue}", queue
    if client is not None:
        what = f"Client {one_line(repr(client), 100)} in queue {queue}"
        arguments += f" --client {shlex.quote(one_line(client))}"
    if not is_new:
        return f"{what} was paused already."
    return f"{what} is paused. Resume it with  python manage.py rtq_resume {arguments}"
