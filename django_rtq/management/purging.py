"""Purges the waiting jobs of a queue or of one of its clients, after a question."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.jobs.job_filter import JobFilter
from django_rtq.inspector.selection import Selection
from django_rtq.inspector.sweep import Sweep
from django_rtq.management.command import INTERRUPTED
from django_rtq.management.output import ProgressLine, count, one_line
from django_rtq.management.prompts import check_interactive, confirm


def add_no_input(parser: ArgumentParser) -> None:
    """Add the option --no-input."""
    parser.add_argument(
        "--no-input", "--noinput", action="store_false", dest="interactive", help="Do not ask for confirmation."
    )


def purge_options(options: Mapping[str, Any]) -> dict[str, bool]:
    """What purge() needs of the options of a command."""
    return {"asks": options["interactive"], "shown": options["verbosity"] > 0}


def purge(stderr: OutputWrapper, queue: str, client: str | None, *, waiting: int, asks: bool, shown: bool) -> int:
    """Ask if there are waiting jobs, then delete them. Returns how many. Raises CommandError."""
    if asks:
        check_interactive()
    whose = "" if client is None else f" of client {one_line(repr(client), 100)}"
    if waiting and asks:
        question = f"This deletes {count(waiting, 'waiting job')}{whose} of queue {queue}."
        confirm(stderr, f"{question} Type the name of the queue to continue:", expected=queue)
    selection = Selection(queues=[queue], filter=JobFilter(client=client))
    with ProgressLine(stderr, "Purged", waiting, shown=shown) as progress:
        result = get_inspector().sweeps.run(Sweep(verb="purge", selection=selection), show=progress.show)
    if result.stopped_by is not None:
        reason = one_line(result.stopped_by) or "Stopped."
        raise CommandError(
            f"{reason} Before that, {count(result.count, 'job')}{whose} of queue {queue} had been purged.",
            returncode=INTERRUPTED if isinstance(result.stopped_by, KeyboardInterrupt) else 1,
        ) from result.stopped_by
    return result.count
