"""Tasks of our own: what takes too long for a web request and has to go on when the browser is closed."""

from __future__ import annotations

from typing import Any

from django_rtq.broker.inspector import get_inspector
from django_rtq.broker.listing import JobFilter
from django_rtq.broker.sweeps import Action
from django_rtq.tasks import task


def is_chore(name: str) -> bool:
    """Whether a task is one of these. What they do needs a permission: nobody makes or edits their jobs by hand."""
    return name.startswith(f"{__name__}.")


@task(priority=100, client="")
def sweep_dead_letters(queue: str, verb: Action, wanted: dict[str, Any], until_ms: int) -> int:
    """Requeue or discard all dead letters that fit and died until then. Returns how many.

    It may be interrupted anywhere and run again: what was requeued is not dead any more, and what has died again
    meanwhile died too late to be meant.
    """
    inspector, chosen, total, cursor = get_inspector(), JobFilter(**wanted), 0, ""
    while True:
        swept = inspector.sweep(queue, verb, chosen, until_ms=until_ms, cursor=cursor)
        total, cursor = total + len(swept.done), swept.cursor
        if not cursor:
            return total
