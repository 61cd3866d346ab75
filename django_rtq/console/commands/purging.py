"""Purges the waiting jobs of a queue or of one of its clients, after a question."""

from __future__ import annotations

from django.core.management.base import CommandError

from django_rtq.console.commands.command import ConsoleCommand
from django_rtq.console.commands.prompts import check_interactive, confirm
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.jobs.job_filter import JobFilter
from django_rtq.console.inspector.selection import Selection
from django_rtq.console.inspector.sweep import Sweep
from django_rtq.console.output import ProgressLine, count
from django_rtq.core.commands.command import INTERRUPTED, Options, one_line


def purge(command: ConsoleCommand, options: Options, queue: str, client: str | None, *, waiting: int) -> int:
    """Ask if there are waiting jobs, then delete them. Returns how many; with --dry-run, how many it would delete.

    Raises CommandError.
    """
    if options["dry_run"]:
        return waiting
    whose = ("" if client is None else f" of client {one_line(repr(client), 100)}") + f" of queue {queue}"
    if options["interactive"]:
        check_interactive()
    if options["interactive"] and waiting:
        jobs = f"{count(waiting, 'waiting job')}{whose}, with all arguments"
        question = f"This permanently deletes {jobs}. Type the name of the queue to continue:"
        confirm(command.stderr, question, expected=queue)
    selection = Selection(queues=[queue], filter=JobFilter(client=client))
    sweep = Sweep(verb="purge", selection=selection)
    with ProgressLine(command.stderr, "Purged", waiting, shown=command.verbosity > 0) as progress:
        result = get_inspector().sweeps.run(sweep, show=progress.show)
    if result.stopped_by is not None:
        reason = one_line(result.stopped_by) or "Stopped."
        raise CommandError(
            f"{reason} Before that, {count(result.count, 'job')}{whose} had been purged.",
            returncode=INTERRUPTED if isinstance(result.stopped_by, KeyboardInterrupt) else 1,
        ) from result.stopped_by
    return result.count
