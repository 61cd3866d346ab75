"""Copies the schedules of the database to Redis, where schedulers read them.

The database is the source of truth. After each change of it, all rows are read and compared with Redis, until the two
are equal. So if two processes do this at the same time, the last one to write also sees what the other one stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django_rtq.broker.broker import get_broker
from django_rtq.broker.task_backends import is_in
from django_rtq.exceptions import InvalidTask, TaskNotFound
from django_rtq.scheduler.registry import schedule_from_row
from django_rtq.tasks import registry

Rows = Mapping[str, Mapping[str, Any]]

MAX_ROUNDS = 10  # whoever changes rows faster than that also syncs them


def sync_rows(read: Callable[[], Rows], place: str = "", *, is_dry_run: bool = False) -> int:
    """Make a Redis hold these rows and no others, but for those whose tasks have another Redis.

    Returns the number of changes. Raises BrokerError. `read` is called again after each change, until it returns what
    Redis holds. A dry run only counts.
    """
    store, changed = get_broker(place).schedules, 0
    for _ in range(MAX_ROUNDS):
        stored = store.read().rows
        wanted = {name: row for name, row in read().items() if _belongs(row, place)}
        changes: dict[str, Mapping[str, Any] | None] = {name: None for name in stored.keys() - wanted.keys()}
        changes |= {name: row for name, row in wanted.items() if stored.get(name) != row}
        changed += len(changes)
        if not changes or is_dry_run:
            break
        store.update(changes, wake=_queues_of(changes.items()))
    return changed


def _belongs(row: Mapping[str, Any], place: str) -> bool:
    """Internal tasks are not stored: schedulers of an older version would run them."""
    name = str(row.get("task"))
    task = registry.known_task(name)
    return not registry.is_internal(name) and is_in("" if task is None else task.backend, place)


def _queues_of(rows: Iterable[tuple[str, Mapping[str, Any] | None]]) -> set[str]:
    """The queues whose schedulers have to be woken. A deleted schedule is noticed when it is due."""
    queues = set()
    for name, row in rows:
        try:
            queues |= {schedule_from_row(name, row).task.queue} if row else set()
        except (TaskNotFound, InvalidTask, TypeError, ValueError):
            continue  # a task of a newer version of the project: its schedulers get the change with the next heartbeat
    return queues
