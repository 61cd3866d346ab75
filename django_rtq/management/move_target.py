"""The queue to which rtq_jobs moves jobs."""

from __future__ import annotations

from django.core.management.base import CommandError

from django_rtq.inspector.inspector import Inspector
from django_rtq.management.command import WRONG_USAGE, RTQCommand
from django_rtq.management.output import one_line
from django_rtq.management.prompts import known_queues


def check_target(inspector: Inspector, target: str, queue: str | None) -> None:
    """Raises CommandError for a queue that is neither declared nor used, or where the jobs are already."""
    if target == queue:
        raise CommandError(f"--queue and --to are both {one_line(target, 100)}.", returncode=WRONG_USAGE)
    known_queues(inspector, [target])


def warn_if_nobody_serves(command: RTQCommand, inspector: Inspector, target: str) -> None:
    """Say on stderr that the moved jobs wait."""
    if inspector.queues.get(target).paused:
        command.stderr.write(f"Queue {target} is paused: they wait until it is resumed.")
    if not inspector.workers([target]):
        command.stderr.write(
            f"No worker serves queue {target} now: they wait. Start one:  python manage.py rtq_worker --queues {target}"
        )
