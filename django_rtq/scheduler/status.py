"""The status of schedules for pages and commands: last and next slot, and the state of the last job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django_rtq.broker.broker import get_broker
from django_rtq.inspector.inspector import get_inspector
from django_rtq.jobs.job import moment
from django_rtq.scheduler.registry import ScheduledTask


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleStatus:
    """The status of one schedule."""

    entry: ScheduledTask
    last_slot: datetime | None  # None: it has not fired yet
    next_slot: datetime | None  # None: it is disabled
    last_job: str  # "": it has not fired yet
    last_state: str  # "": unknown, or it has not fired yet


def schedule_statuses(entries: Sequence[ScheduledTask]) -> list[ScheduleStatus]:
    """The status of each schedule, in two round trips. Raises BrokerError."""
    if not entries:
        return []
    now_ms, states = get_broker().schedules.states(sorted({entry.task.queue for entry in entries}))
    known = [states[entry.task.queue].get(entry.name) for entry in entries]
    jobs = [state.last_job if state and state.last_job != "-" else "" for state in known]
    asked = {(entry.task.queue, job) for entry, job in zip(entries, jobs, strict=True) if job}
    found = get_inspector().states_of(sorted(asked))
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
