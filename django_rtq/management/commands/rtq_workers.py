"""manage.py rtq_workers: list the workers, and tell them to go quiet, to resume or to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.template.defaultfilters import filesizeformat

from django_rtq.exceptions import WorkerNotFound
from django_rtq.inspector.details import WorkerDetails
from django_rtq.inspector.inspector import get_inspector
from django_rtq.management.command import WRONG_USAGE, RTQCommand, add_actions
from django_rtq.management.output import Column, as_json, count, duration, number, one_line, table
from django_rtq.management.prompts import known_queues, system_user
from django_rtq.validation import did_you_mean

ACTIONS = {
    "list": "Show the workers: one line for each process.",
    "quiet": "Ask workers to finish their running jobs, to claim no more, and to keep running.",
    "wake": "Ask quiet workers to claim jobs again.",
    "stop": "Ask workers to finish their running jobs and to exit, as SIGTERM does.",
}
ASKED = {"quiet": "to go quiet", "wake": "to claim jobs again", "stop": "to stop"}
COLUMNS = [
    Column("WORKER"),
    Column("RTQ_WORKER"),
    Column("HOST"),
    Column("PID", right=True),
    Column("QUEUES"),
    Column("BUSY", right=True),
    Column("DONE", right=True),
    Column("UP", right=True),
    Column("MEMORY", right=True),
    Column("STATE"),
]
FACTS = (
    *("name", "supervisor_name", "host", "pid", "supervisor", "queues", "slots", "jobs_done"),
    *("version", "project_version", "project", "other_limits"),
)
NO_WORKER = "No worker is alive. Start one:  python manage.py rtq_worker"


class Command(RTQCommand):
    help = "List the workers, and tell them to go quiet, to resume or to stop. A command applies to a whole rtq_worker."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 done; 1 there is no such worker, or Redis did not answer; 2 wrong usage. Workers follow "
            "within a second; list shows it some seconds later."
        )
        for name, action in add_actions(parser, ACTIONS, all_print_json=True):
            action.add_argument(
                "names",
                nargs="*",
                metavar="NAME",
                help="A worker's name, or that of its rtq_worker; * and ? are wildcards: 'web1-*'.",
            )
            action.add_argument("--queue", metavar="QUEUE", help="Only workers that serve this queue.")
            if name != "list":
                action.add_argument("--all", action="store_true", help="Every worker.")

    def handle(self, *args: Any, **options: Any) -> None:
        names, queue, action = options["names"], options["queue"], options["action"]
        if action != "list" and not (names or queue or options["all"]):
            raise CommandError(
                f"Which workers? Give names, --queue, or --all to {action} every one of them.", returncode=WRONG_USAGE
            )
        if names and options.get("all"):
            raise CommandError("Give either names or --all.", returncode=WRONG_USAGE)
        inspector = get_inspector()
        queues = None if queue is None else known_queues(inspector, [queue])
        found = inspector.workers(queues)
        if names:
            found = _named(found, names)
        if action == "list":
            self._list(found, is_json=options["json"])
        else:
            self._send(found, options)

    def _list(self, found: list[WorkerDetails], *, is_json: bool) -> None:
        if is_json:
            self.stdout.write(as_json(list(map(_as_dict, found))))
        elif found:
            heading, *rows = table(COLUMNS, map(_cells, found))
            self.stdout.write("\n".join([self.style.MIGRATE_HEADING(heading), *rows]))
        else:
            self.stdout.write(NO_WORKER)

    def _send(self, found: list[WorkerDetails], options: dict[str, Any]) -> None:
        action = options["action"]
        inspector = get_inspector()
        quiet: Callable[[str], None] = partial(inspector.quiet_worker, by=system_user())
        send = {"quiet": quiet, "wake": inspector.wake_worker, "stop": inspector.stop_worker}[action]
        asked: list[str] = []
        failed: list[str] = []
        # One process for each rtq_worker: they all have the same supervisor.
        for worker in {worker.supervisor_name or worker.name: worker for worker in found}.values():
            try:
                send(worker.name)
            except WorkerNotFound as error:
                failed.append(one_line(error))
            else:
                asked.append(worker.supervisor_name)
        if options["json"]:
            self.stdout.write(as_json({"asked": asked, "failed": failed}))
        elif options["verbosity"]:
            for name in asked:
                self.stdout.write(f"Asked {one_line(name)} {ASKED[action]}.")
            if not found:
                self.stdout.write(NO_WORKER)
        for problem in failed:
            self.stderr.write(problem)
        if failed:
            raise CommandError(
                f"{number(len(failed))} of {count(len(failed) + len(asked), 'worker')} could not be asked."
            )


def _named(workers: Iterable[WorkerDetails], names: Iterable[str]) -> list[WorkerDetails]:
    """The workers whose name, or that of their rtq_worker, matches. Raises CommandError for a name without a match."""
    found: dict[str, WorkerDetails] = {}
    known = list(workers)
    for name in names:
        matching = [
            worker for worker in known if any(fnmatchcase(own, name) for own in (worker.name, worker.supervisor_name))
        ]
        if not matching:
            hint = did_you_mean(
                name, [worker.name for worker in known], otherwise=" See rtq_workers list.", quoted=True
            )
            raise CommandError(f"No worker is named {one_line(repr(name), 100)}.{hint}")
        found.update((worker.name, worker) for worker in matching)
    return [worker for worker in known if worker.name in found]


def _as_dict(worker: WorkerDetails) -> dict[str, Any]:
    return {
        **{name: getattr(worker, name) for name in FACTS},
        "busy": worker.busy,
        "running": [job.id for job in worker.running],
        "up_seconds": worker.up_seconds,
        "last_seen_seconds": worker.last_seen_seconds,
        "memory_bytes": worker.memory_bytes,
        "is_quiet": worker.is_quiet,
        "is_lost": worker.is_lost,
    }


def _cells(worker: WorkerDetails) -> list[str]:
    return [
        one_line(worker.name),
        one_line(worker.supervisor_name) or "-",
        one_line(worker.host, 40) or "-",
        str(worker.pid or "-"),
        one_line(",".join(worker.queues), 60) or "-",
        f"{worker.busy}/{worker.slots}",
        number(worker.jobs_done),
        duration(worker.up_seconds),
        filesizeformat(worker.memory_bytes).replace("\xa0", " ") if worker.memory_bytes else "-",
        "lost" if worker.is_lost else "quiet" if worker.is_quiet else "works",
    ]
