"""manage.py rtq_queues: list, pause, resume and purge queues, and forget those that are not used any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_rtq.inspector.details import QueueDetails, WorkerDetails
from django_rtq.inspector.inspector import get_inspector
from django_rtq.management.command import RTQCommand, add_actions
from django_rtq.management.output import Column, as_json, count, duration, number, one_line, table
from django_rtq.management.prompts import known_queues
from django_rtq.management.purging import add_no_input, purge, purge_options
from django_rtq.tasks.registry import declared_queues

COLUMNS = [
    Column("QUEUE"),
    Column("DECLARED"),
    Column("STATE"),
    *(Column(title, right=True) for title in ("WORKERS", "WAITING", "RUNNING", "DEAD", "FINISHED", "OLDEST")),
]
WHY_NOT = {
    "jobs": "it has jobs or dead letters. See rtq_jobs list --queue {0}",
    "paused": "it is paused. Resume it first:  python manage.py rtq_queues resume {0}",
    "limits": "it has limits, or clients that are paused. See rtq_clients list {0}",
    "workers": "a worker serves it. See rtq_workers list --queue {0}",
    "recent": "its last jobs finished a few minutes ago, and could be sent again. Try again in two minutes.",
    "outcomes": "it keeps outcomes of finished jobs. Add --discard-outcomes to delete them.",
}
ACTIONS = {
    "list": "Show all queues: those that tasks and settings declare, and those that were used.",
    "pause": "Pause queues: jobs can still be enqueued and running jobs finish, but no worker starts another one.",
    "resume": "Resume paused queues. Workers continue at once.",
    "purge": "Delete all queued, scheduled and retrying jobs of a queue. Running jobs and dead letters stay. Jobs that "
    "are enqueued meanwhile are deleted too; stop their producers first, if there are many.",
    "forget": "Remove queues without jobs and workers from all lists. A queue that is used again comes back.",
}
EXIT_CODES = (
    "Exit codes: 0 done, even if there was nothing to do; 1 a queue is unknown (then none is paused or resumed) or in "
    "use (the others are forgotten), not confirmed, or Redis did not answer (some jobs may have been purged before); 2 "
    "wrong usage; 130 stopped with Ctrl-C."
)
SAID = {
    ("pause", True): "Queue {0} is paused. Resume it with  python manage.py rtq_queues resume {0}",
    ("pause", False): "Queue {0} was paused already.",
    ("resume", True): "Resumed queue {0}.",
    ("resume", False): "Queue {0} was not paused.",
}


class Command(RTQCommand):
    help = "List, pause, resume and purge queues, and forget those that are not used any more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = EXIT_CODES
        for name, action in add_actions(parser, ACTIONS, epilog=EXIT_CODES, all_print_json=True):
            if name == "purge":
                action.add_argument("queues", nargs=1, metavar="QUEUE", help="The queue to empty.")
                add_no_input(action)
            elif name != "list":
                action.add_argument("queues", nargs="+", metavar="QUEUE", help=f"A queue to {name}.")
            if name == "forget":
                action.add_argument(
                    "--discard-outcomes", action="store_true", help="Delete the outcomes of finished jobs with it."
                )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(options)
        elif options["action"] == "purge":
            self._purge_one(options)
        elif options["action"] == "forget":
            self._forget(options)
        else:
            self._pause_or_resume(options)

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
        inspector, failed = get_inspector(), {}
        names = known_queues(inspector, options["queues"])
        for name in names:
            answer = inspector.forget(name, discard_outcomes=options["discard_outcomes"])
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

    def _pause_or_resume(self, options: dict[str, Any]) -> None:
        inspector, action = get_inspector(), options["action"]
        names = known_queues(inspector, options["queues"])
        changed = {name: (inspector.pause if action == "pause" else inspector.resume)(name) for name in names}
        if options["json"]:
            self.stdout.write(as_json({f"{action}d": names, "changed": [name for name in names if changed[name]]}))
        elif options["verbosity"]:
            for name in names:
                self.stdout.write(SAID[action, changed[name]].format(name))

    def _purge_one(self, options: dict[str, Any]) -> None:
        inspector = get_inspector()
        (queue,) = known_queues(inspector, options["queues"])
        (details,) = inspector.queues.details([queue])
        waiting = details.queued + details.scheduled + details.retrying
        purged = purge(self.stderr, queue, None, waiting=waiting, **purge_options(options))
        if options["json"]:
            self.stdout.write(as_json({"queue": queue, "purged": purged}))
        elif options["verbosity"]:
            self.stdout.write(
                f"Purged {count(purged, 'job')} from queue {queue}."
                if purged
                else f"No job waits in queue {queue}: nothing was deleted."
            )


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
