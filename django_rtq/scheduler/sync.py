"""The mirror: brings the rows that people made from the database to the plan in Redis.

The database is the truth. Whoever has changed it mirrors all rows afterwards, as it finds them then: of two who do so
at the same time, the last one to write looks once more and sees what the other stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django_rtq.broker.broker import get_broker
from django_rtq.exceptions import InvalidTask, TaskNotFound
from django_rtq.scheduler.registry import entry_from_row
from django_rtq.tasks import registry

Rows = Mapping[str, Mapping[str, Any]]

MOST_LOOKS = 10  # somebody who changes rows that fast mirrors them as well


def mirror(read: Callable[[], Rows]) -> int:
    """Make the plan hold these rows and no other. Returns how many it had to change. Raises BrokerError.

    `read` is asked again after each change, until what it tells is what the plan holds.
    """
    plan, changed = get_broker().schedules, 0
    for _ in range(MOST_LOOKS):
        there, wanted = plan.read().rows, {name: row for name, row in read().items() if not _is_refused(row)}
        changes: dict[str, Mapping[str, Any] | None] = {name: None for name in there.keys() - wanted.keys()}
        changes |= {name: row for name, row in wanted.items() if there.get(name) != row}
        if not changes:
            break
        plan.update(changes, wake=_queues_of(changes.items()))
        changed += len(changes)
    return changed


def _is_refused(row: Mapping[str, Any]) -> bool:
    """Schedulers refuse these themselves; those of an older version do not, so it stays out of the plan."""
    return registry.is_internal(str(row.get("task")))


def _queues_of(rows: Iterable[tuple[str, Mapping[str, Any] | None]]) -> set[str]:
    """Where a scheduler has something to do at once. Those that go out are noticed when they would fire."""
    queues = set()
    for name, row in rows:
        try:
            queues |= {entry_from_row(name, row).task.queue} if row else set()
        except (TaskNotFound, InvalidTask, TypeError, ValueError):
            continue  # of a newer version of the project: its schedulers hear of it with the next heartbeat
    return queues
