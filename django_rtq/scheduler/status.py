"""The status of schedules for pages and commands: last and next slot, and the state of the last job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_rtq.broker.broker import get_broker
from django_rtq.broker.schedule_store import StoredSchedules
from django_rtq.broker.task_backends import place_of
from django_rtq.conf.config import get_config
from django_rtq.inspector.inspector import get_inspector
from django_rtq.jobs.job import moment
from django_rtq.scheduler.registry import ScheduledTask, declared_schedules, load_schedules


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleStatus:
    """The status of one schedule."""

    entry: ScheduledTask
    last_slot: datetime | None  # None: it has not fired yet
    next_slot: datetime | None  # None: it is disabled
    last_job: str  # "": it has not fired yet
    last_state: str  # "": unknown, or it has not fired yet


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStatuses:
    """The status of schedules of the database."""

    valid: Sequence[ScheduleStatus]
    broken: Mapping[str, str]  # name -> problem
    in_redis: frozenset[str]  # names of those that Redis has as the database has them


def row_statuses(rows: Mapping[str, Mapping[str, Any]]) -> RowStatuses:
    """The status of each row of the database, by name. Raises BrokerError and ConfigurationError."""
    found = load_schedules(declared_schedules(get_config()), StoredSchedules(rows=rows))
    entries = [entry for entry in found.entries if entry.source == "admin"]
    stored: dict[str, Any] = {}
    for place in {"", *(place_of(entry.task.backend) for entry in entries)}:
        stored |= get_broker(place).schedules.read().rows
    return RowStatuses(
        valid=schedule_statuses(entries),
        broken=found.broken,
        in_redis=frozenset(name for name, row in rows.items() if stored.get(name) == row),
    )


def schedule_statuses(entries: Sequence[ScheduledTask]) -> list[ScheduleStatus]:
    """The status of each schedule, in two round trips to each Redis. Raises BrokerError."""
    by_place: dict[str, list[ScheduledTask]] = {}
    for entry in entries:
        by_place.setdefault(place_of(entry.task.backend), []).append(entry)
    found = [status for place, group in by_place.items() for status in _statuses_in(place, group)]
    return sorted(found, key=lambda status: status.entry.name)


def _statuses_in(place: str, entries: Sequence[ScheduledTask]) -> list[ScheduleStatus]:
    now_ms, states = get_broker(place).schedules.states(sorted({entry.task.queue for entry in entries}))
    known = [states[entry.task.queue].get(entry.name) for entry in entries]
    jobs = [state.last_job if state and state.last_job != "-" else "" for state in known]
    asked = {(entry.task.queue, job) for entry, job in zip(entries, jobs, strict=True) if job}
    found = get_inspector(place).states_of(sorted(asked))
    return [
        ScheduleStatus(
            entry=entry,
            last_slot=moment(state.last_slot_ms) if state and state.last_slot_ms else None,
            next_slot=moment(entry.schedule.next_ms(now_ms)) if entry.enabled else None,
            last_job=job,
            last_state=found.get((entry.task.queue, job), ""),
        )
        for entry, state, job in zip(entries, known, jobs, strict=True)
    ]
