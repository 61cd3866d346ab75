"""The status of schedules for pages, commands and incidents: last and next slot, and the state of the last job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from django_rtq.console.merging import ALL, by, joined
from django_rtq.console.reading.readers import Readers, readers_of
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.schedule_store import ScheduleState, StoredSchedules
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.job import moment
from django_rtq.core.scheduler.registry import (
    ScheduledTask,
    ScheduleSet,
    declared_schedules,
    load_schedules,
    schedules_in,
)

Keep = Callable[[ScheduledTask], bool]
_NAME = attrgetter("entry.name")
_UNKNOWN = ScheduleState(last_slot_ms=0, last_job="-", definition="", began_ms=0)
MISSED_MS = 120_000  # a slot that is later is missed; a scheduler looks at least once a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleStatus:
    """The status of one schedule."""

    entry: ScheduledTask
    place: str  # the backend in TASKS whose Redis has its jobs; "": RTQ["REDIS"]
    last_slot: datetime | None  # None: it has not fired yet
    next_slot: datetime | None  # None: it is disabled
    last_job: str  # "": it has not fired yet
    last_state: str  # "": unknown, not asked for, or it has not fired yet
    has_begun: bool  # a scheduler counts its slots
    missed_slot: datetime | None  # the first slot that has passed since the last without firing; None: none
    is_skipped: bool  # the last slot started no job: the one before lived, an equal job did, or the queue was full


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSchedules:
    """All schedules of a Redis, or of all: those of the code, the settings, and the rows that it has a copy of."""

    #: By name, disabled ones included.
    valid: Sequence[ScheduleStatus] = field(metadata=by(lambda lists: sorted(joined(lists), key=_NAME)))
    broken: Mapping[str, str] = field(metadata=ALL)  # invalid rows: name -> problem
    rows: Mapping[str, Mapping[str, Any]] = field(metadata=ALL)  # name -> row of the database
    in_redis: frozenset[str] = frozenset()  # of rows that were asked for, those that Redis has as the database has them


def read_schedules(place: str, *, keep: Keep | None = None, with_jobs: bool = True) -> KnownSchedules:
    """The schedules of a Redis, or those to keep: two round trips, or one without the states of their last jobs.

    Two more if rows were changed since this process read them. Raises BrokerError and ConfigurationError.
    """
    declared, schedules = schedules_in(place, get_config()), ScheduleSet(entries=[], broken={})

    def queues_of(stored: StoredSchedules) -> set[str]:
        nonlocal schedules
        schedules = load_schedules(declared, stored)
        if keep is not None:
            schedules = replace(schedules, entries=list(filter(keep, schedules.entries)))
        return _queues_of(schedules.entries)

    stored, now_ms, states = get_broker(place).schedules.look(queues_of)
    valid = _statuses_in(place, schedules.entries, now_ms, states, with_jobs=with_jobs)
    return KnownSchedules(valid=valid, broken=schedules.broken, rows=stored.rows)


def row_statuses(readers: Readers, rows: Mapping[str, Mapping[str, Any]]) -> KnownSchedules:
    """The status of each row of the database, by name. Raises BrokerError and ConfigurationError."""
    schedules = load_schedules(declared_schedules(get_config()), StoredSchedules(rows=rows))
    by_place: dict[str, list[ScheduledTask]] = {"": []}
    for entry in schedules.entries:
        if entry.source == "admin":
            by_place.setdefault(entry.place, []).append(entry)

    def read(place: str) -> tuple[Mapping[str, Any], list[ScheduleStatus]]:
        store, entries = get_broker(place).schedules, by_place[place]
        stored, (now_ms, states) = store.read(), store.states(sorted(_queues_of(entries)))
        return stored.rows, _statuses_in(place, entries, now_ms, states)

    found = readers.in_places(by_place, read).values()
    return KnownSchedules(
        valid=sorted(joined(statuses for _, statuses in found), key=_NAME),
        broken=schedules.broken,
        rows=rows,
        in_redis=frozenset(name for name, row in rows.items() if any(copy.get(name) == row for copy, _ in found)),
    )


def _queues_of(entries: Iterable[ScheduledTask]) -> set[str]:
    return {entry.task.queue for entry in entries}


def _statuses_in(
    place: str,
    entries: Sequence[ScheduledTask],
    now_ms: int,
    states: Mapping[str, Mapping[str, ScheduleState]],
    *,
    with_jobs: bool = True,
) -> list[ScheduleStatus]:
    known = [(entry, states[entry.task.queue].get(entry.name, _UNKNOWN)) for entry in entries]
    asked = {(entry.task.queue, state.last_job) for entry, state in known if with_jobs and state.last_job != "-"}
    job_states = readers_of(place).states_of(sorted(asked)) if asked else {}
    return [
        _status(place, entry, state, job_states.get((entry.task.queue, state.last_job), ""), now_ms)
        for entry, state in known
    ]


def _status(place: str, entry: ScheduledTask, state: ScheduleState, job_state: str, now_ms: int) -> ScheduleStatus:
    has_begun, last_ms = state.definition == entry.definition, state.last_slot_ms
    missed_ms = entry.schedule.next_ms(max(last_ms, state.began_ms)) if has_begun and entry.enabled else now_ms
    return ScheduleStatus(
        entry=entry,
        place=place,
        last_slot=moment(last_ms) if last_ms else None,
        next_slot=moment(entry.schedule.next_ms(now_ms)) if entry.enabled else None,
        last_job="" if state.last_job == "-" else state.last_job,
        last_state=job_state,
        has_begun=has_begun,
        missed_slot=moment(missed_ms) if missed_ms < now_ms - MISSED_MS else None,
        is_skipped=bool(last_ms) and state.last_job != entry.job_id(last_ms),
    )
