"""manage.py rtq_dead: list, requeue or discard dead letters."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from functools import partial
from heapq import merge
from itertools import chain, islice
from typing import Any, NamedTuple

from django.core.management.base import CommandError, CommandParser
from django.utils.timezone import localtime

from django_rtq.exceptions import JobError, WrongState
from django_rtq.inspector.dead_letters import BulkResult, run_steps
from django_rtq.inspector.details import JobDetails
from django_rtq.inspector.inspector import Inspector, get_inspector
from django_rtq.inspector.job_filter import JobFilter
from django_rtq.jobs.failure import Attempt
from django_rtq.jobs.job import JobState
from django_rtq.management.command import INTERRUPTED, RTQCommand
from django_rtq.management.dead_arguments import EXIT_CODES, add_actions, check_selection, is_filtered
from django_rtq.management.output import Column, ProgressLine, as_json, count, number, one_line, table
from django_rtq.management.prompts import check_interactive, confirm, known_queues
from django_rtq.redaction import redacted

LISTED = 50  # unless --limit says otherwise
AT_ONCE = 100  # dead letters of one step: what was done before an error is known that exactly
_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)
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
NO_MATCH = "No dead letter matches."
DONE = {"requeue": "requeued", "discard": "discarded"}


class Command(RTQCommand):
    help = "List dead letters (jobs that failed permanently), requeue them, or discard them."

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
            self._print_json(_find_dead(inspector, queues, wanted, limit))
            return
        limit = limit or (None if options["all"] else LISTED)
        found = list(_find_dead(inspector, queues, wanted, limit and limit + 1))
        if found:
            self._print_table(found[:limit], cut=options["verbosity"] < 2)
        else:
            self.stdout.write(NO_MATCH if is_filtered(options) else NONE_AT_ALL)
        if limit and len(found) > limit:
            self.stdout.write(f"\nOnly the newest {number(limit)} are shown: see --limit and --all.")

    def _list_ids(self, options: dict[str, Any]) -> None:
        inspector, found, problems = get_inspector(), [], []
        for name in options["ids"]:
            try:
                found.append(_find_dead_one(inspector, name, options["queue"]))
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
            self.stdout.write(f"{separator}\n{as_json(_as_dict(redacted(job)))}", ending="")
            separator = ","
        self.stdout.write("[]" if separator == "[" else "\n]")

    # -- requeue, discard

    def _act_on_ids(self, options: dict[str, Any]) -> None:
        inspector, job_ids = get_inspector(), list(dict.fromkeys(options["ids"]))
        steps = inspector.bulk_steps_for_ids(_queues(inspector, options), options["action"], job_ids)
        result = run_steps(steps)
        self._report(result, options)
        left = set(job_ids) - set(result.done)
        for name in job_ids:
            if name in left:
                self.stderr.write(_why_not(inspector, name, options["queue"]))
        if left:
            did = DONE[options["action"]]
            raise CommandError(f"{number(len(left))} of {count(len(job_ids), 'id')} could not be {did}.")

    def _act_on_many(self, options: dict[str, Any]) -> None:
        asks = options["action"] == "discard" and options["interactive"]
        if asks:
            check_interactive()
        shown = options["verbosity"] > 0
        with ProgressLine(self.stderr, "Dead letters found", shown=shown) as progress:
            found = (_newest if options["limit"] else _all)(get_inspector(), options, progress)
        if asks and found.total:
            question = f"This permanently deletes {count(found.total, 'dead letter')}. Type 'yes' to continue:"
            confirm(self.stderr, question, expected="yes")
        with ProgressLine(self.stderr, DONE[options["action"]].capitalize(), found.total, shown=shown) as progress:
            result = run_steps(found.steps, show=progress.show)
        self._report(result, options)

    def _report(self, result: BulkResult, options: dict[str, Any]) -> None:
        did, many = DONE[options["action"]], count(len(result.done), "dead letter")
        if options["json"]:
            self.stdout.write(as_json({did: len(result.done), "ids": result.done}))
        elif options["verbosity"]:
            if options["verbosity"] > 1:
                self.stdout.write("".join(f"{one_line(name)}\n" for name in result.done), ending="")
            self.stdout.write(f"{did.capitalize()} {many}.")
        if result.stopped_by is not None:
            interrupted = isinstance(result.stopped_by, KeyboardInterrupt)
            raise CommandError(
                f"{'Stopped.' if interrupted else one_line(result.stopped_by)} "
                f"{many} had been {did} before; run this again for the rest.",
                returncode=INTERRUPTED if interrupted else 1,
            ) from result.stopped_by


class _Found(NamedTuple):
    total: int
    steps: Iterator[BulkResult]  # that requeue or discard them


def _all(inspector: Inspector, options: dict[str, Any], progress: ProgressLine) -> _Found:
    """All that match. They are counted in Redis, and jobs that die later are left out."""
    wanted, total = _filter(options), 0
    until_ms: dict[str, int] = {}
    for queue in _queues(inspector, options):
        show = partial(_show_sum, progress, total)
        selection = inspector.dead_letters.select(queue, wanted, depth=sys.maxsize, show=show)
        total, until_ms[queue] = total + selection.count, selection.until_ms
    action = options["action"]
    steps = (inspector.bulk_steps(q, action, wanted, until_ms=ms, limit=AT_ONCE) for q, ms in until_ms.items())
    return _Found(total, chain.from_iterable(steps))


def _newest(inspector: Inspector, options: dict[str, Any], progress: ProgressLine) -> _Found:
    """The newest that match, of all queues together, up to --limit."""
    by_queue: dict[str, list[str]] = {}
    total = 0
    for job in _find_dead(inspector, _queues(inspector, options), _filter(options), options["limit"]):
        by_queue.setdefault(job.queue, []).append(job.id)
        total += 1
        if total % AT_ONCE == 0:
            progress.show(total)
    steps = (inspector.bulk_steps_for_ids([queue], options["action"], ids) for queue, ids in by_queue.items())
    return _Found(total, chain.from_iterable(steps))


def _show_sum(progress: ProgressLine, before: int, count: int) -> None:
    progress.show(before + count)


def _find_dead(
    inspector: Inspector, queues: Sequence[str], wanted: JobFilter, limit: int | None
) -> Iterator[JobDetails]:
    """The dead letters that match, of all these queues together, the newest first."""
    found = merge(*map(inspector.job_list.dead, queues), key=lambda job: job.died_at or _LONG_AGO, reverse=True)
    return islice(filter(wanted.fits, found), limit)


def _find_dead_one(inspector: Inspector, job_id: str, queue: str | None) -> JobDetails:
    """One dead letter; of any queue, when none is named. Raises JobNotFound, and WrongState for any other job."""
    job = inspector.find(job_id, queue)
    if job.state is not JobState.DEAD:
        raise WrongState(job_id, f"is not a dead letter: it is {job.state}, in queue {job.queue}.")
    return job


def _queues(inspector: Inspector, options: dict[str, Any]) -> list[str]:
    return inspector.queues.names() if options["queue"] is None else known_queues(inspector, [options["queue"]])


def _filter(options: dict[str, Any]) -> JobFilter:
    return JobFilter(task=options["task"] or "", error=options["error"] or "")


def _why_not(inspector: Inspector, name: str, queue: str | None) -> str:
    try:
        _find_dead_one(inspector, name, queue)
    except JobError as error:
        return one_line(error)
    return f"Job {name}: is still dead. It has died just now, or it is unique and another job of the same key is alive."


def _as_dict(job: JobDetails) -> dict[str, Any]:
    """A redacted dead letter as it is printed as JSON."""
    newest = job.attempts[-1] if job.attempts else Attempt.read({})
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "client": job.client,
        "args": job.args,
        "kwargs": job.kwargs,
        "headers": job.headers,
        "attempts": job.failures + job.crashes,
        "error_class": newest.error_class,
        "error": newest.error,
        "traceback": newest.traceback,
        "died_at": job.died_at.isoformat() if job.died_at else None,
    }


def _row(job: JobDetails, *, cut: bool) -> list[str]:
    kind, message = job.newest_error
    kind = kind.rpartition(".")[2]
    error = f"{kind}: {message}" if kind and message else kind or message
    return [
        one_line(job.id),
        job.queue,
        one_line(job.task or "(unreadable)", 60 if cut else None),
        one_line(job.client, 30 if cut else None),
        number(job.failures + job.crashes),
        localtime(job.died_at).isoformat(sep=" ", timespec="seconds") if job.died_at else "-",
        one_line(error, 80 if cut else None),
    ]
