"""manage.py rtq_workers: list the workers, and tell them to go quiet, to resume or to stop."""

from __future__ import annotations

from fnmatch import fnmatchcase

from django.core.management.base import CommandError

from django_rtq.console.acting.verb import Target
from django_rtq.console.commands.command import ALL, NO_WORKER, QUEUE, Action, SheetCommand
from django_rtq.console.commands.prompts import known_queues, system_user
from django_rtq.console.reading.details import WorkerDetails
from django_rtq.console.reading.readers import Readers
from django_rtq.console.subjects.workers import WORKERS
from django_rtq.core.commands.command import WRONG_USAGE, Argument, Options, one_line
from django_rtq.core.validation import did_you_mean

NAMES = Argument(
    "names",
    nargs="*",
    metavar="NAME",
    help="A worker's name, or that of its rtq_worker; * and ? are wildcards: 'web1:*'.",
)
CHOICE = [NAMES, QUEUE.but(action="append", help="Only workers that serve this queue; may be repeated.")]
CHOICE_OR_ALL = [*CHOICE, ALL.but(help="Every worker.")]


class Command(SheetCommand):
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
        self.print_sheet(options, WORKERS, _selected(self.readers, options), if_none=NO_WORKER)

    def do_quiet(self, options: Options) -> None:
        _check_choice(options)
        # One process for each rtq_worker: they all have the same supervisor.
        workers = {worker.supervisor_name or worker.name: worker for worker in _selected(self.readers, options)}
        targets = {name: Target(worker.name, by=system_user()) for name, worker in workers.items()}
        said = self.run_each(
            options, "worker", targets, lambda name: "done" if workers[name].supervisor_name else "refused"
        )
        failed = [each.text for each in said.values() if each.how == "refused"]
        asked = [name for name, each in said.items() if each.how == "done"]
        sentences = [said[name].text for name in asked]
        self.report(options, {"asked": asked, "failed": failed}, sentences if workers else [NO_WORKER])
        self.complain(options, failed, len(said), "worker", "asked")

    do_wake = do_stop = do_quiet


def _check_choice(options: Options) -> None:
    """Raises CommandError if it is unclear which workers are meant."""
    if not (options["names"] or options["queue"] or options["all"]):
        every = f"--all to {options['action']} every one of them"
        raise CommandError(f"Which workers? Give names, --queue, or {every}.", returncode=WRONG_USAGE)
    if options["names"] and options["all"]:
        raise CommandError("Give either names or --all.", returncode=WRONG_USAGE)


def _selected(readers: Readers, options: Options) -> list[WorkerDetails]:
    """The workers that the options name, or whose rtq_worker. Raises CommandError for a name without a match, unless a
    shard is silent."""
    queues = options["queue"]
    workers = WORKERS.read(readers, None if queues is None else known_queues(readers, queues))
    if not options["names"]:
        return list(workers)
    alive, selected = list(workers), set[str]()
    for name in options["names"]:
        matching = {
            worker.name
            for worker in alive
            if fnmatchcase(worker.name, name) or fnmatchcase(worker.supervisor_name, name)
        }
        if not matching and not readers.silent:
            hint = did_you_mean(
                name, [worker.name for worker in alive], otherwise=" See rtq_workers list.", quoted=True
            )
            raise CommandError(f"No worker is named {one_line(repr(name), 100)}.{hint}")
        selected |= matching
    return [worker for worker in alive if worker.name in selected]
