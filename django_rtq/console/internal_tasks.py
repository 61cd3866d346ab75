"""Tasks of this package: work that takes too long for a web request, and the deletion of old rows.

They are internal: the code that enqueues them has checked a permission. So nobody can enqueue or edit their jobs in
forms, schedules or commands: see registry.get_public_task(). Each worker has these tasks, few run them: what they need
is imported when they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django.apps import apps

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import pinned_in, place_of_job, places
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.context import current_job
from django_rtq.core.tasks.registry import register
from django_rtq.core.tasks.task import Task, on_backend
from django_rtq.databases.clocks import database_now
from django_rtq.databases.exactly_once import STEP_MARK
from django_rtq.databases.known_jobs import known_jobs

if TYPE_CHECKING:
    from django_rtq.console.reading.sweep import Sweep
    from django_rtq.core.handle import JobHandle

P = ParamSpec("P")
R = TypeVar("R")

ROWS_AT_ONCE = 500


def internal_task(func: Callable[P, R]) -> Task[P, R]:
    """Make a function an internal task. Its jobs run before all others of their queue."""
    declared = Task(
        func=func, name=f"django_rtq.internal_tasks.{func.__name__}", priority=100, on_commit=False, internal=True
    )
    register(declared)
    return declared


@internal_task
def run_bulk_action(sweep: dict[str, Any]) -> int:
    """Do something with many jobs of a queue: see Sweep. Returns with how many.

    It may be interrupted anywhere and run again: requeued jobs are not dead any more, those that died again died too
    late to be meant, and what was cancelled or run now is not in that state any more.
    """
    from django_rtq.console.reading.readers import get_inspector
    from django_rtq.console.reading.sweep import Sweep
    from django_rtq.console.redaction import redacted

    job, wanted = current_job(), Sweep.read(sweep)
    place = place_of_job(job.backend, job.job_id) if job else ""
    sweeps, done = get_inspector(place).sweeps, 0
    counted = sweeps.count(wanted, shown=redacted) if job else None
    for step in sweeps.steps(wanted, shown=redacted):
        done += step.count
        if job and counted:
            job.progress(done, counted.count if counted.is_complete else None)
    return done


def enqueue_rest(sweep: Sweep, queues: Sequence[str], place: str) -> Iterator[JobHandle]:
    """Enqueue a job in each of these queues, which does what is left there. Raises BrokerError and QueueFull."""
    for queue in queues:
        action = on_backend(run_bulk_action.using(queue_name=queue), pinned_in(place))
        yield action.delay(sweep.of(queue).stored())


@internal_task
def delete_committed_jobs(database: str) -> int:
    """Delete the rows of jobs that committed RTQ["EXACTLY_ONCE_DAYS"] ago and are not in Redis. Returns how many.

    A job that is still in Redis can run again, as a dead letter that is requeued or in a paused queue: its row is
    checked again after the same time. It may be interrupted anywhere and run again.
    """
    rows = apps.get_model("django_rtq", "CommittedJob")._base_manager.using(database)
    before = database_now() - timedelta(days=get_config().exactly_once_days)
    old = rows.filter(committed_at__lt=before).order_by("committed_at")
    deleted, jobs = 0, list(old.values_list("job_id", flat=True)[:ROWS_AT_ONCE])
    while jobs:
        ids = {row_id: row_id.partition(STEP_MARK)[0] for row_id in jobs}
        wanted = list(dict.fromkeys(ids.values()))
        stored = set[str]().union(*(known_jobs(get_broker(place), wanted, with_ended=False) for place in places()))
        gone = [row_id for row_id in jobs if ids[row_id] not in stored]
        rows.filter(pk__in=gone).delete()
        rows.filter(pk__in=[row_id for row_id in jobs if ids[row_id] in stored]).update(committed_at=database_now())
        deleted += len(gone)
        jobs = list(old.values_list("job_id", flat=True)[:ROWS_AT_ONCE])
    return deleted
