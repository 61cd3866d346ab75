"""Tasks of our own: what takes too long for a web request and has to go on when the browser is closed.

They are internal: what they do needs a permission, which is asked for by whoever enqueues them. So nobody makes or
edits their jobs by hand, in forms, schedules or commands: see registry.get_open_task().
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from django_rtq.inspector.dead_letters import STEP, Action
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.job_list import JobFilter
from django_rtq.tasks.registry import register
from django_rtq.tasks.task import Task

P = ParamSpec("P")
R = TypeVar("R")


def chore(func: Callable[P, R]) -> Task[P, R]:
    """Make a function an internal task, whose jobs go before all others of their queue."""
    declared = Task(func=func, priority=100, internal=True)
    register(declared)
    return declared


@chore
def sweep_dead_letters(
    queue: str, verb: Action, wanted: dict[str, Any], until_ms: int, per_second: int = 0, cursor: str = ""
) -> int:
    """Requeue or discard all dead letters that fit and died until then. Returns how many.

    It may be interrupted anywhere and run again: what was requeued is not dead any more, and what has died again
    meanwhile died too late to be meant. With `per_second` a job does so many and leaves the rest to another one.
    """
    inspector, chosen, total = get_inspector(), JobFilter(**wanted), 0
    while True:
        limit = per_second or STEP
        swept = inspector.sweep(queue, verb, chosen, until_ms=until_ms, cursor=cursor, limit=limit)
        total, cursor = total + len(swept.done), swept.cursor
        if not cursor:
            return total
        if per_second:
            rest = sweep_dead_letters.using(queue_name=queue, run_after=1.0)
            rest.delay(queue, verb, wanted, until_ms, per_second, cursor)
            return total
