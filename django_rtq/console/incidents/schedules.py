"""Incidents of schedules: a slot has passed and started no job, or a schedule is invalid.

Readers compute missed slots as schedulers do: Lua knows no cron, and a dead scheduler writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django_rtq.console.incidents.incident import Action, Incident, Severity
from django_rtq.console.inspector.overview import Overview
from django_rtq.console.inspector.queues import unserved
from django_rtq.console.schedule_status import KnownSchedules, ScheduleStatus, read_schedules
from django_rtq.core.broker.task_backends import place_of, viewed_backend
from django_rtq.exceptions import ConfigurationError

MAX_NAME = 80  # characters of a name in a text
MAX_PROBLEM = 300


def known_schedules() -> KnownSchedules:
    """The schedules that incidents are about: those of the Redis that is viewed. One round trip. Raises BrokerError."""
    try:
        return read_schedules(place_of(viewed_backend()), with_jobs=False)
    except ConfigurationError as error:
        return KnownSchedules(valid=[], broken={'RTQ["SCHEDULES"]': str(error)}, rows={})


def missed_schedules(overview: Overview, schedules: KnownSchedules) -> Iterator[Incident]:
    """Queues with schedules that were due and have not fired, the longest ago first."""
    by_queue: dict[str, list[tuple[float, ScheduleStatus]]] = {}
    for status in schedules.valid:
        if status.missed_slot is not None and not status.entry.task.internal and not is_let_go(status, overview):
            late = (overview.now - status.missed_slot).total_seconds()
            by_queue.setdefault(status.entry.task.queue, []).append((late, status))
    for queue, missed in sorted(by_queue.items(), key=lambda pair: -max(late for late, _ in pair[1])):
        yield _missed(overview, queue, missed)


def is_let_go(status: ScheduleStatus, overview: Overview) -> bool:
    """Whether the scheduler that is there now will not fire a missed slot, as the schedule says."""
    return status.entry.schedule.missed == "skip" and has_scheduler(overview, status.entry.task.queue)


def has_scheduler(overview: Overview, queue: str) -> bool:
    """Whether a scheduler has looked at a queue lately."""
    return queue not in overview.unscheduled and any(row.details.name == queue for row in overview.queues)


def _missed(overview: Overview, queue: str, missed: Sequence[tuple[float, ScheduleStatus]]) -> Incident:
    _, first = min(missed, key=lambda pair: (-pair[0], pair[1].entry.name))
    is_scheduled = has_scheduler(overview, queue)
    command = "rtq_worker" if unserved([queue], overview.workers) else "rtq_scheduler"
    return Incident(
        kind="schedule_missed",
        severity=Severity.CRITICAL,
        since=first.missed_slot,
        queue=queue,
        values={"name": queue, "schedule": first.entry.name[:MAX_NAME], "count": len(missed)},
        also=("scheduler_fails",) if is_scheduled else ("scheduler_missing",),
        actions=(Action.SHOW_SCHEDULES, Action.SHOW_WORKERS),
        command="" if is_scheduled else f"python manage.py {command} --queues {queue}",
    )


def invalid_schedules(schedules: KnownSchedules) -> Iterator[Incident]:
    """Schedules that cannot run, as one incident."""
    broken = {
        name: problem
        for name, problem in sorted(schedules.broken.items())
        if schedules.rows.get(name, {}).get("enabled", True)
    }
    for name, problem in list(broken.items())[:1]:
        yield Incident(
            kind="schedule_invalid",
            severity=Severity.WARNING,
            values={"schedule": name[:MAX_NAME], "error": problem[:MAX_PROBLEM].rstrip("."), "count": len(broken)},
            actions=(Action.SHOW_SCHEDULES,),
        )
