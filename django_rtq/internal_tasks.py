"""Tasks of this package: work that takes too long for a web request.

They are internal: whoever enqueues them has checked a permission. So nobody can enqueue or edit their jobs in forms,
schedules or commands: see registry.get_public_task().
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from django_rtq.inspector.dead_letters import STEP, BulkAction
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.job_filter import JobFilter
from django_rtq.tasks.registry import register
from django_rtq.tasks.task import Task

P = ParamSpec("P")
R = TypeVar("R")


def internal_task(func: Callable[P, R]) -> Task[P, R]:
    """Make a function an internal task. Its jobs run before all others of their queue."""
    declared = Task(func=func, priority=100, on_commit=False, internal=True)
    register(declared)
    return declared


@internal_task
def run_bulk_action(
    queue: str, action: BulkAction, filter: dict[str, Any], until_ms: int, per_second: int = 0, cursor: str = ""
) -> int:
    """Requeue or discard all dead letters that match and died up to a moment. Returns how many.

    It may be interrupted anywhere and run again: requeued jobs are not dead any more, and those that died again died
    too late to be meant. With `per_second` a job handles that many and enqueues another job for the rest.
    """
    steps = get_inspector().bulk_steps(
        queue, action, JobFilter(**filter), until_ms=until_ms, cursor=cursor, limit=per_second or STEP
    )
    if not per_second:
        return sum(len(step.done) for step in steps)
    step = next(steps)
    if step.cursor:
        rest = run_bulk_action.using(queue_name=queue, run_after=1.0)
        rest.delay(queue, action, filter, until_ms, per_second, step.cursor)
    return len(step.done)
