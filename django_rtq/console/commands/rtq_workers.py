"""manage.py rtq_workers: list the workers, and tell them to go quiet, to resume or to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from django.core.management.base import CommandError
from django.template.defaultfilters import filesizeformat

from django_rtq.console.commands.command import ALL, NO_WORKER, QUEUE, Action, ActionCommand
from django_rtq.console.commands.prompts import NotHere, known_queues, system_user
from django_rtq.console.inspector.details import WorkerDetails
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.output import Column, count, duration, facts, number
from django_rtq.core.commands.command import WRONG_USAGE, Argument, Options, one_line
from django_rtq.core.validation import did_you_mean
from django_rtq.exceptions import WorkerNotFound

ASKED = {"quiet": "to go quiet", "wake": "to claim jobs again", "stop": "to stop"}


def _size(memory_bytes: int | None) -> str:
    return filesizeformat(memory_bytes).replace("\xa0", " ") if memory_bytes else "-"


def _state(worker: WorkerDetails) -> str:
    if worker.is_lost:
        return "lost"
    if worker.crash_loop:
        return "crash loop"
    return "quiet" if worker.is_quiet else "works"


COLUMNS = [
    Column("WORKER", lambda worker: worker.name),
    Column("RTQ_WORKER", lambda worker: worker.supervisor_name or "-"),
    Column("HOST", lambda worker: worker.host or "-"),
    Column("PID", lambda worker: str(worker.pid or "-"), right=True),
    Column("QUEUES", lambda worker: ",".join(worker.queues) or "-"),
    Column("BUSY", lambda worker: f"{worker.busy}/{worker.slots}", right=True),
    Column("DONE", lambda worker: worker.jobs_done, right=True),
    Column("UP", lambda worker: duration(worker.up_seconds), right=True),
    Column("MEMORY", lambda worker: _size(worker.memory_bytes), right=True),
    Column("STATE", _state),
]
FACTS = (
    *("name", "supervisor_name", "host", "pid", "supervisor", "queues", "slots", "jobs_done"),
    *("version", "project_version", "project", "other_limits"),
    *("busy", "up_seconds", "last_seen_seconds", "memory_bytes", "is_quiet", "is_lost", "crash_loop"),
)
NAMES = Argument(
    "names",
    nargs="*",
    metavar="NAME",
    help="A worker's name, or that of its rtq_worker; * and ? are wildcards: 'web1:*'.",
)
CHOICE = [NAMES, QUEUE.but(action="append", help="Only workers that serve this queue; may be repeated.")]
CHOICE_OR_ALL = [*CHOICE, ALL.but(help="Every worker.")]


class Command(ActionCommand):
    help = "List the workers, and tell them to go quiet, to resume or to stop. A command applies to a whole rtq_worker."
    exit_codes = (
        "Exit codes: 0 done; 1 there is no such worker, or Redis did not answer; 64 wrong usage. Workers follow within "
        "a second; list shows it some seconds later."
    )
    actions = {
        "list": Action("Show the workers: one line for each process.", CHOICE, reads_only=True),
        "quiet": Action(
            "Ask workers to finish their running jobs, to claim no more, and to keep running.", CHOICE_OR_ALL
        ),
        "wake": Action("Ask quiet workers to claim jobs again.", CHOICE_OR_ALL),
        "stop": Action("Ask workers to finish their running jobs and to exit, as SIGTERM does.", CHOICE_OR_ALL),
    }

    def do_list(self, options: Options) -> None:
        self.print_list(options, COLUMNS, _selected(options), _as_dict, if_none=NO_WORKER)

    def do_quiet(self, options: Options) -> None:
        _check_choice(options)
        workers = _selected(options)
        asked, failed = _ask(workers, options["action"], is_dry_run=options["dry_run"])
        verb = "Would ask" if options["dry_run"] else "Asked"
        sentences = [f"{verb} {one_line(name)} {ASKED[options['action']]}." for name in asked]
        self.report(options, {"asked": asked, "failed": failed}, sentences if workers else [NO_WORKER])
        for problem in failed:
            self.stderr.write(problem)
        if failed:
            raise CommandError(
                f"{number(len(failed))} of {count(len(failed) + len(asked), 'worker')} could not be asked."
            )

    do_wake = do_stop = do_quiet


def _check_choice(options: Options) -> None:
    """Raises CommandError if it is unclear which workers are meant."""
    if not (options["names"] or options["queue"] or options["all"]):
        every = f"--all to {options['action']} every one of them"
        raise CommandError(f"Which workers? Give names, --queue, or {every}.", returncode=WRONG_USAGE)
    if options["names"] and options["all"]:
        raise CommandError("Give either names or --all.", returncode=WRONG_USAGE)


def _ask(workers: Iterable[WorkerDetails], action: str, *, is_dry_run: bool) -> tuple[list[str], list[str]]:
    """Ask the supervisors of workers. Returns their names, and why others could not be asked."""
    inspector = get_inspector()
    quiet: Callable[[str], None] = partial(inspector.quiet_worker, by=system_user())
    send = {"quiet": quiet, "wake": inspector.wake_worker, "stop": inspector.stop_worker}[action]
    asked: list[str] = []
    failed: list[str] = []
    # One process for each rtq_worker: they all have the same supervisor.
    for worker in {worker.supervisor_name or worker.name: worker for worker in workers}.values():
        try:
            if not is_dry_run:
                send(worker.name)
            elif not worker.supervisor_name:
                raise WorkerNotFound(worker.name)
        except WorkerNotFound as error:
            failed.append(one_line(error))
        else:
            asked.append(worker.supervisor_name)
    return asked, failed


def _selected(options: Options) -> list[WorkerDetails]:
    """The workers that the options name. Raises CommandError."""
    inspector, queues = get_inspector(), options["queue"]
    workers = inspector.workers(None if queues is None else known_queues(inspector, queues))
    return _named(workers, options["names"]) if options["names"] else workers


def _named(workers: Iterable[WorkerDetails], names: Iterable[str]) -> list[WorkerDetails]:
    """The workers whose name, or that of their rtq_worker, matches. Raises CommandError for a name without a match."""
    alive, selected = list(workers), set[str]()
    for name in names:
        matching = {
            worker.name
            for worker in alive
            if fnmatchcase(worker.name, name) or fnmatchcase(worker.supervisor_name, name)
        }
        if not matching:
            hint = did_you_mean(
                name, [worker.name for worker in alive], otherwise=" See rtq_workers list.", quoted=True
            )
            raise NotHere(f"No worker is named {one_line(repr(name), 100)}.{hint}")
        selected |= matching
    return [worker for worker in alive if worker.name in selected]


def _as_dict(worker: WorkerDetails) -> dict[str, Any]:
    return {**facts(worker, FACTS), "running": [job.id for job in worker.running]}
