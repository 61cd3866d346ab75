"""Schedules and the database: the copy in Redis of those that people made, and those that delete old rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import is_in, places
from django_rtq.core.conf.config import get_config
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
        wanted = {name: row for name, row in read().items() if _belongs(name, row, place)}
        changes: dict[str, Mapping[str, Any] | None] = {name: None for name in stored.keys() - wanted.keys()}
        changes |= {name: row for name, row in wanted.items() if stored.get(name) != row}
        changed += len(changes)
        if not changes or is_dry_run:
            break
        store.update(changes, wake=_queues_of(changes.items()))
    return changed


def _belongs(name: str, row: Mapping[str, Any], place: str) -> bool:
    """Whether this Redis has the schedule of a row. None has those of internal tasks, which nobody may schedule."""
    task = registry.known_task(str(row.get("task")))
    if registry.is_internal(str(row.get("task"))):
        return False
    if task is None or get_config().shards is None:
        return is_in("" if task is None else task.backend, place)
    try:
        return schedule_from_row(name, row).place == place
    except (TaskNotFound, InvalidTask, TypeError, ValueError):
        return place == ""  # it is shown as broken


def _queues_of(rows: Iterable[tuple[str, Mapping[str, Any] | None]]) -> set[str]:
    """The queues whose schedulers have to be woken. A deleted schedule is noticed when it is due."""
    queues = set()
    for name, row in rows:
        try:
            queues |= {schedule_from_row(name, row).task.queue} if row else set()
        except (TaskNotFound, InvalidTask, TypeError, ValueError):
            continue  # a task of a newer version of the project: its schedulers get the change with the next heartbeat
    return queues


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
