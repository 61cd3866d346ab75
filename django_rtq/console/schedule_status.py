"""The status of schedules for pages, commands and incidents: last and next slot, and the state of the last job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.schedule_store import ScheduleState
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.job import moment
from django_rtq.core.scheduler.registry import (
    ScheduledTask,
    Source,
    load_schedules,
    schedules_in,
)

_UNKNOWN = ScheduleState(last_slot_ms=0, last_job="-", definition="", began_ms=0)
MISSED_MS = 120_000  # a slot that is later is missed; a scheduler looks at least once a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleStatus:
    """The status of one schedule: of the code, the settings, or a row that Redis has a copy of."""

    name: str
    task: str
    queue: str
    source: Source
    enabled: bool = True
    entry: ScheduledTask | None = None  # None: it is invalid, which is its problem
    place: str = ""  # the backend in TASKS whose Redis has its jobs; "": RTQ["REDIS"]
    last_slot: datetime | None = None  # None: it has not fired yet
    next_slot: datetime | None = None  # None: it is disabled
    last_job: str = ""  # "": it has not fired yet
    last_state: str = ""  # "": unknown, not asked for, or it has not fired yet
    has_begun: bool = False  # a scheduler counts its slots
    missed_slot: datetime | None = None  # the first slot that has passed since the last without firing; None: none
    is_skipped: bool = (
        False  # the last slot started no job: the last one lived, an equal one did, or the queue was full
    )
    row: Mapping[str, Any] | None = None  # of the database, as Redis has it; None: it is declared
    problem: str = ""  # why it does not run, as far as it was asked for; "": it does
    is_bad: bool = False  # whether something is wrong


def read_schedules(place: str, *, with_jobs: bool = True) -> list[ScheduleStatus]:
    """The schedules of a Redis, disabled ones included, by name, then the invalid ones.

    Two round trips, or one without the states of their last jobs. Two more if rows were changed since this process read
    them. Raises BrokerError and ConfigurationError.
    """
    declared, store = schedules_in(place, get_config()), get_broker(place).schedules
    while True:
        stored = store.last_read
        entries, broken = load_schedules(declared, stored)
        now_ms, states = store.states(sorted({entry.task.queue for entry in entries}))
        if store.latest_version == stored.version:
            break
        store.read()
    known = [(entry, states[entry.task.queue].get(entry.name, _UNKNOWN)) for entry in entries]
    asked = {(entry.task.queue, state.last_job) for entry, state in known if with_jobs and state.last_job != "-"}
    job_states = readers_of(place).states_of(sorted(asked)) if asked else {}
    statuses = [
        _status(place, entry, state, job_states.get((entry.task.queue, state.last_job), ""), now_ms)
        for entry, state in known
    ]
    of_rows = {name: row for name, row in stored.rows.items() if name not in broken}
    return [*(replace(each, row=of_rows.get(each.name)) for each in statuses), *_invalid(broken, stored.rows)]


def _invalid(broken: Mapping[str, str], rows: Mapping[str, Mapping[str, Any]]) -> Iterator[ScheduleStatus]:
    for name, problem in broken.items():
        row = rows[name]
        yield ScheduleStatus(
            name=name,
            task=str(row.get("task", "")),
            queue=str(row.get("queue", "")),
            source="admin",
            enabled=bool(row.get("enabled", True)),
            problem=problem,
            is_bad=True,
            row=row,
        )


def _status(place: str, entry: ScheduledTask, state: ScheduleState, job_state: str, now_ms: int) -> ScheduleStatus:
    has_begun, last_ms = state.definition == entry.definition, state.last_slot_ms
    missed_ms = entry.schedule.next_ms(max(last_ms, state.began_ms)) if has_begun and entry.enabled else now_ms
    return ScheduleStatus(
        name=entry.name,
        task=entry.task.name,
        queue=entry.task.queue,
        source=entry.source,
        enabled=entry.enabled,
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
