"""manage.py rtq_queues: list the queues, and forget those that are not used any more."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_rtq.broker.broker import get_broker
from django_rtq.inspector.details import QueueDetails, WorkerDetails
from django_rtq.inspector.inspector import get_inspector
from django_rtq.management.command import RTQCommand, accept_django_options
from django_rtq.management.output import Column, as_json, count, duration, number, one_line, table
from django_rtq.management.prompts import known_queues
from django_rtq.tasks.registry import declared_queues

COLUMNS = [
    Column("QUEUE"),
    Column("DECLARED"),
    Column("STATE"),
    *(Column(title, right=True) for title in ("WORKERS", "WAITING", "RUNNING", "DEAD", "FINISHED", "OLDEST")),
]
WHY_NOT = {
    "jobs": "it has jobs or dead letters. See rtq_jobs list --queue {0}",
    "paused": "it is paused. Resume it first:  python manage.py rtq_resume {0}",
    "workers": "a worker serves it. See rtq_workers list --queue {0}",
    "recent": "its last jobs finished a few minutes ago, and could be sent again. Try again in two minutes.",
    "outcomes": "it keeps outcomes of finished jobs. Add --discard-outcomes to delete them.",
}


class Command(RTQCommand):
    help = "List the queues, and forget queues that are not used any more, such as those of a typing error."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 done; 1 a queue is unknown or in use (the others are forgotten), or Redis did not answer; 2 "
            "wrong usage."
        )
        parser.add_argument("--json", action="store_true", help="Print JSON. Also accepted after the action.")
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
        texts = {
            "list": "Show all queues: those that tasks and settings declare, and those that were used.",
            "forget": "Remove queues without jobs and workers from all lists. A queue that is used again comes back.",
        }
        for name, text in texts.items():
            action = actions.add_parser(name, help=text, description=text)
            # Without a default, which would overwrite an option before the action.
            action.add_argument("--json", action="store_true", default=SUPPRESS, help="Print JSON.")
            if name == "forget":
                action.add_argument("queues", nargs="+", metavar="QUEUE", help="A queue to forget.")
                action.add_argument(
                    "--discard-outcomes", action="store_true", help="Delete the outcomes of finished jobs with it."
                )
            accept_django_options(action)

    def handle(self, *args: Any, **options: Any) -> None:
        (self._list if options["action"] == "list" else self._forget)(options)

    def _list(self, options: dict[str, Any]) -> None:
        inspector, declared = get_inspector(), declared_queues()
        queues = inspector.queues.details(sorted({*declared, *inspector.queues.names()}))
        workers = inspector.workers([queue.name for queue in queues])
        if options["json"]:
            self.stdout.write(
                as_json(
                    [
                        {**asdict(queue), "declared": queue.name in declared, "workers": _served_by(queue, workers)}
                        for queue in queues
                    ]
                )
            )
            return
        heading, *rows = table(COLUMNS, [_row(queue, declared, workers) for queue in queues])
        self.stdout.write("\n".join([self.style.MIGRATE_HEADING(heading), *rows]))

    def _forget(self, options: dict[str, Any]) -> None:
        names = known_queues(get_inspector(), options["queues"])
        maintenance, failed = get_broker().maintenance, {}
        for name in names:
            answer = maintenance.forget(name, discard_outcomes=options["discard_outcomes"])
            if answer in WHY_NOT:
                failed[name] = WHY_NOT[answer].format(name)
        done = [name for name in names if name not in failed]
        if options["json"]:
            self.stdout.write(as_json({"forgotten": done, "failed": failed}))
        elif options["verbosity"]:
            declared = declared_queues()
            for name in done:
                more = " It is declared, so it comes back when it is used." if name in declared else ""
                self.stdout.write(f"Forgot queue {name}.{more}")
        if not options["json"]:
            for name, why in failed.items():
                self.stderr.write(f"Queue {name} stays: {why}")
        if failed:
            raise CommandError(f"{number(len(failed))} of {count(len(names), 'queue')} could not be forgotten.")


def _served_by(queue: QueueDetails, workers: Sequence[WorkerDetails]) -> int:
    return sum(queue.name in worker.queues for worker in workers)


def _row(queue: QueueDetails, declared: Sequence[str], workers: Sequence[WorkerDetails]) -> list[str]:
    return [
        one_line(queue.name),
        "yes" if queue.name in declared else "no",
        "paused" if queue.paused else "open",
        number(_served_by(queue, workers)),
        number(queue.queued + queue.scheduled + queue.retrying),
        number(queue.running),
        number(queue.dead),
        number(queue.finished),
        duration(queue.oldest_seconds),
    ]
