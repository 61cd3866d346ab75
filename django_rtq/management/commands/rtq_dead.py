"""rtq_dead: look at dead letters; give them a new life, or throw them away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.timezone import localtime

from django_rtq.exceptions import JobError
from django_rtq.inspector.details import JobDetails
from django_rtq.inspector.inspector import Inspector, get_inspector
from django_rtq.management.command import INTERRUPTED, RTQCommand
from django_rtq.management.confirmation import check_somebody_is_there, confirm
from django_rtq.management.dead_arguments import EXIT_CODES, add_actions, check_selection, is_filtered
from django_rtq.management.dead_letters import Failure, Filter, described, find_dead, find_dead_one
from django_rtq.management.printable import as_json, count, number, one_line
from django_rtq.management.progress import ProgressLine
from django_rtq.management.sweeping import Act, BulkResult, sweep, sweep_ids
from django_rtq.management.tables import Column, table
from django_rtq.management.typed_names import known_queues
from django_rtq.redaction import redacted

LISTED = 50  # unless --limit says otherwise
COLUMNS = [
    Column("ID"),
    Column("QUEUE"),
    Column("TASK"),
    Column("CLIENT"),
    Column("ATTEMPTS", right=True),
    Column("DIED"),
    Column("ERROR"),
]
NONE_AT_ALL = "There are no dead letters."
NONE_FITS = "No dead letter fits."
DONE = {"requeue": "requeued", "discard": "discarded"}


class Command(RTQCommand):
    help = "Look at dead letters (jobs that will not run again by themselves), requeue them, or discard them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = EXIT_CODES
        add_actions(parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions"))

    def handle(self, *args: Any, **options: Any) -> None:
        check_selection(options)
        if options["action"] == "list":
            (self._list_ids if options["ids"] else self._list)(options)
        else:
            (self._act_on_ids if options["ids"] else self._act_on_many)(options)

    # -- list

    def _list(self, options: dict[str, Any]) -> None:
        inspector = get_inspector()
        queues, wanted, limit = _queues(inspector, options), _filter(options), options["limit"]
        if options["json"]:
            self._print_json(find_dead(inspector, queues, wanted, limit))
            return
        limit = limit or (None if options["all"] else LISTED)
        found = list(find_dead(inspector, queues, wanted, limit and limit + 1))
        if found:
            self._print_table(found[:limit], cut=options["verbosity"] < 2)
        else:
            self.stdout.write(NONE_FITS if is_filtered(options) else NONE_AT_ALL)
        if limit and len(found) > limit:
            self.stdout.write(f"\nThe newest {number(limit)}; there are more: see --limit and --all.")

    def _list_ids(self, options: dict[str, Any]) -> None:
        inspector, found, problems = get_inspector(), [], []
        for name in options["ids"]:
            try:
                found.append(find_dead_one(inspector, name, options["queue"]))
            except JobError as error:
                problems.append(one_line(error))
        if options["json"]:
            self._print_json(found)
        elif found:
            self._print_table(found, cut=options["verbosity"] < 2)
        for problem in problems:
            self.stderr.write(problem)
        if problems:
            wanted = count(len(options["ids"]), "id")
            raise CommandError(f"{number(len(problems))} of {wanted} could not be shown.")

    def _print_table(self, jobs: Iterable[JobDetails], *, cut: bool) -> None:
        heading, *rows = table(COLUMNS, (_row(redacted(job), cut=cut) for job in jobs))
        self.stdout.write("\n".join([self.style.MIGRATE_HEADING(heading), *rows]))

    def _print_json(self, found: Iterable[JobDetails]) -> None:
        # One by one: a hundred thousand with their tracebacks may not fit into memory.
        separator = "["
        for job in found:
            self.stdout.write(f"{separator}\n{as_json(described(redacted(job)))}", ending="")
            separator = ","
        self.stdout.write("[]" if separator == "[" else "\n]")

    # -- requeue, discard

    def _act_on_ids(self, options: dict[str, Any]) -> None:
        inspector, job_ids = get_inspector(), list(dict.fromkeys(options["ids"]))
        swept = sweep_ids(_act(inspector, options), _queues(inspector, options), job_ids)
        self._report(swept, options)
        left = set(job_ids) - set(swept.done)
        for name in job_ids:
            if name in left:
                self.stderr.write(_why_not(inspector, name, options["queue"]))
        if left:
            did = DONE[options["action"]]
            raise CommandError(f"{number(len(left))} of {count(len(job_ids), 'id')} could not be {did}.")

    def _act_on_many(self, options: dict[str, Any]) -> None:
        asks = options["action"] == "discard" and options["interactive"]
        if asks:
            check_somebody_is_there()
        inspector, shown = get_inspector(), options["verbosity"] > 0
        letters: list[tuple[str, str]] = []
        with ProgressLine(self.stderr, "Dead letters found", shown=shown) as progress:
            for job in find_dead(inspector, _queues(inspector, options), _filter(options), options["limit"]):
                letters.append((job.queue, job.id))
                if len(letters) % 100 == 0:
                    progress.show(len(letters))
        if asks and letters:
            question = f"This throws away {count(len(letters), 'dead letter')} for good. Type 'yes' to go on:"
            confirm(self.stderr, question, expected="yes")
        with ProgressLine(self.stderr, DONE[options["action"]].capitalize(), len(letters), shown=shown) as progress:
            swept = sweep(_act(inspector, options), letters, progress)
        self._report(swept, options)

    def _report(self, swept: BulkResult, options: dict[str, Any]) -> None:
        did, many = DONE[options["action"]], count(len(swept.done), "dead letter")
        if options["json"]:
            self.stdout.write(as_json({did: len(swept.done), "ids": swept.done}))
        elif options["verbosity"]:
            if options["verbosity"] > 1:
                self.stdout.write("".join(f"{one_line(name)}\n" for name in swept.done), ending="")
            self.stdout.write(f"{did.capitalize()} {many}.")
        if swept.stopped_by is not None:
            interrupted = isinstance(swept.stopped_by, KeyboardInterrupt)
            raise CommandError(
                f"{'Stopped.' if interrupted else one_line(swept.stopped_by)} "
                f"Until then {many} had been {did}; the rest can be {did} by running this again.",
                returncode=INTERRUPTED if interrupted else 1,
            ) from swept.stopped_by


def _queues(inspector: Inspector, options: dict[str, Any]) -> list[str]:
    return inspector.queues() if options["queue"] is None else known_queues(inspector, [options["queue"]])


def _filter(options: dict[str, Any]) -> Filter:
    return Filter(task=options["task"] or "", error=options["error"] or "")


def _act(inspector: Inspector, options: dict[str, Any]) -> Act:
    return inspector.requeue if options["action"] == "requeue" else inspector.discard


def _why_not(inspector: Inspector, name: str, queue: str | None) -> str:
    try:
        find_dead_one(inspector, name, queue)
    except JobError as error:
        return one_line(error)
    return f"Job {name}: is dead still. It has died just now, or it is unique and another job like it lives."


def _row(job: JobDetails, *, cut: bool) -> list[str]:
    failure = Failure.newest_of(job)
    kind = failure.error_class.rpartition(".")[2]
    error = f"{kind}: {failure.error}" if kind and failure.error else kind or failure.error
    return [
        one_line(job.id),
        job.queue,
        one_line(job.task or "(unreadable)", 60 if cut else None),
        one_line(job.client, 30 if cut else None),
        number(job.failures + job.crashes),
        localtime(job.died_at).isoformat(sep=" ", timespec="seconds") if job.died_at else "-",
        one_line(error, 80 if cut else None),
    ]
