"""manage.py rtq: the queues, the workers and what is wrong, in short, and which command does what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandParser

from django_rtq.console.commands.command import NO_WORKER, ConsoleCommand
from django_rtq.console.commands.rtq_check import incident_line
from django_rtq.console.commands.rtq_status import NO_QUEUE, QUEUE_COLUMNS
from django_rtq.console.incidents import find_incidents
from django_rtq.console.incidents.schedules import known_schedules
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.overview import Overview
from django_rtq.console.output import Column, count
from django_rtq.core.broker.task_backends import place_of, viewed_backend
from django_rtq.databases.outbox import outbox_lag
from django_rtq.exceptions import BrokerError

SHOWN = ("QUEUE", "STATE", "QUEUED", "RETRYING", "RUNNING", "DEAD", "OLDEST")
MOST_INCIDENTS = 5
COMMAND_COLUMNS = [Column("COMMAND", lambda command: command[0]), Column("WHAT IT DOES", lambda command: command[1])]


class Command(ConsoleCommand):
    help = "Show the queues, the workers and what is wrong, in short, and which command does what."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = "Exit codes: 0 done; 1 Redis did not answer; 64 wrong usage."

    def handle(self, *args: Any, **options: Any) -> None:
        problem: BrokerError | None = None
        try:
            self.stdout.write("\n\n".join([*self._overview(get_inspector().overview.read()), ""]))
        except BrokerError as error:
            problem = error
        if viewed_backend() == place_of(self.places(options)[-1]):  # once, if there are several shards
            self.stdout.write(self.table_text(COMMAND_COLUMNS, list(_commands())))
            self.stdout.write("\nAll options of one:  python manage.py rtq_jobs --help")
        if problem is not None:
            raise problem

    def _overview(self, overview: Overview) -> Iterator[str]:
        columns = [column for column in QUEUE_COLUMNS if column.title in SHOWN]
        queues = [row.details for row in overview.queues]
        yield self.table_text(columns, queues) if queues else NO_QUEUE
        workers = overview.living
        if workers:
            busy, slots = sum(worker.busy for worker in workers), sum(worker.slots for worker in workers)
            hosts = len({worker.host for worker in workers})
            yield f"{count(len(workers), 'worker')} on {count(hosts, 'host')}: {busy} of {count(slots, 'slot')} busy."
        incidents = find_incidents(overview, outbox_lag(), known_schedules())
        if not workers and not any(incident.kind == "no_worker" for incident in incidents):
            yield NO_WORKER
        lines = [incident_line(incident, overview.now) for incident in incidents[:MOST_INCIDENTS]]
        if more := len(incidents) - len(lines):
            lines.append(f"{count(more, 'more incident')}:  python manage.py rtq_check")
        if lines:
            yield self.style.WARNING("\n".join(lines))


def _commands() -> Iterator[tuple[str, str]]:
    """The names of the commands, and what they do."""
    for name, app in sorted(get_commands().items()):
        if app == "django_rtq":
            yield name, load_command_class(app, name).help.partition(". ")[0].removesuffix(".")
