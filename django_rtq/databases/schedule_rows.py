"""Schedules and the database: the copy in Redis of those that people made, and those that delete old rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import UnknownPlace, is_in, places
from django_rtq.core.scheduler.registry import ScheduledTask, schedule_from_row
from django_rtq.core.schedules import every
from django_rtq.core.tasks import registry
from django_rtq.core.tasks.task import on_backend
from django_rtq.exceptions import InvalidTask, TaskNotFound

Rows = Mapping[str, Mapping[str, Any]]

MAX_ROUNDS = 10  # a process that changes rows faster than that also syncs them


def sync_rows(read: Callable[[], Rows], place: str = "", *, is_dry_run: bool = False) -> int:
    """Make a Redis hold these rows of the database and no others, but for those whose tasks have another Redis.

    The database is the source of truth, and schedulers read the copy (D34). If two processes do this at the same time,
    the last one to write also sees what the other one stored.

    Returns the number of changes. Raises BrokerError. `read` is called again after each change, until it returns what
    Redis holds. A dry run only counts.
    """
    store, changed = get_broker(place).schedules, 0
    for _ in range(MAX_ROUNDS):
        stored = store.read().rows
        # None has those of internal tasks, which nobody may schedule.
        rows = {name: row for name, row in read().items() if not registry.is_internal(str(row.get("task")))}
        wanted = {name: row for name, row in rows.items() if _place_and_queue(name, row)[0] == place}
        changes: dict[str, Mapping[str, Any] | None] = {name: None for name in stored.keys() - wanted.keys()}
        changes |= {name: row for name, row in wanted.items() if stored.get(name) != row}
        changed += len(changes)
        if not changes or is_dry_run:
            break
        # A deleted schedule is noticed when it is due, one of a newer version with the next heartbeat.
        queues = {_place_and_queue(name, row)[1] for name, row in changes.items() if row}
        store.update(changes, wake=queues - {""})
    return changed


def _place_and_queue(name: str, row: Mapping[str, Any]) -> tuple[str | None, str]:
    """Where the jobs of a row go. None: TASKS does not have the backend of its task any more.

    One that is shown as broken, or whose task is of a newer version, has no queue, and is where its task says.
    """
    try:
        entry = schedule_from_row(name, row)
        return entry.place, entry.task.queue
    except (TaskNotFound, InvalidTask, TypeError, ValueError, UnknownPlace):
        task = registry.known_task(str(row.get("task")))
        backend = "" if task is None else task.backend
        return next((place for place in places() if is_in(backend, place)), None), ""


def deletions_of_rows() -> list[ScheduledTask]:
    """Schedules that delete old rows of tasks with exactly_once, in the queues of these tasks: they have workers."""
    tasks = [task for task in registry.all_tasks().values() if task.exactly_once]
    deletions = {
        (place, task.queue, task.exactly_once) for task in tasks for place in places() if is_in(task.backend, place)
    }
    if not deletions:
        return []  # most projects: the task need not be imported
    delete = registry.get_task("django_rtq.internal_tasks.delete_committed_jobs")
    return [
        ScheduledTask(
            task=on_backend(delete.using(queue_name=queue), place),
            schedule=every(
                hours=1,
                name=f"django_rtq: delete committed jobs, {queue}, {database}{place and f', {place}'}",
                args=[database],
                overlap="skip",
            ),
        )
        for place, queue, database in deletions
    ]
