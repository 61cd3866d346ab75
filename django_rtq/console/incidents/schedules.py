"""Incidents of schedules: a slot has passed and started no job, or a schedule is invalid.

Readers compute missed slots as schedulers do: Lua knows no cron, and a dead scheduler writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from django_rtq.console.incidents.incident import QUEUE, SYSTEM, Action, Incident, Seen
from django_rtq.console.reading.overview import Overview
from django_rtq.console.reading.queues import unserved
from django_rtq.console.schedule_status import ScheduleStatus, read_schedules
from django_rtq.exceptions import ConfigurationError

MAX_NAME = 80  # characters of a name in a text
MAX_PROBLEM = 300


def known_schedules(place: str) -> Sequence[ScheduleStatus]:
    """The schedules that incidents of a Redis are about. One round trip. Raises BrokerError."""
    try:
        return read_schedules(place, with_jobs=False)
    except ConfigurationError as error:
        return [ScheduleStatus(name='RTQ["SCHEDULES"]', task="", queue="", source="settings", problem=str(error))]


@QUEUE.critical(
    _("Schedule missed"),
    ngettext_lazy(
        "%(count)s schedule was due and started no job: %(schedule)s.",
        "%(count)s schedules were due and started no job, %(schedule)s among them.",
        "number",
    ),
    Action.SHOW_SCHEDULES,
    Action.SHOW_WORKERS,
    also={
        "scheduler_missing": _("No scheduler is running for this queue. Start one:"),
        "scheduler_fails": _(
            "A scheduler is running for this queue: its log says why, or it runs another version of the project."
        ),
    },
)
def schedule_missed(seen: Seen) -> Iterator[Incident]:
    """Queues with schedules that were due and have not fired, the longest ago first."""
    by_queue: dict[str, list[tuple[datetime, str]]] = {}
    for status in seen.schedules:
        is_ours = status.entry is not None and status.entry.task.internal
        if status.missed_slot is not None and not is_ours and not is_let_go(status, seen.overview):
            by_queue.setdefault(status.queue, []).append((status.missed_slot, status.name))
    for queue, missed in sorted(by_queue.items(), key=lambda pair: min(pair[1])[0]):
        (slot, name), is_scheduled = min(missed), has_scheduler(seen.overview, queue)
        command = "rtq_worker" if unserved([queue], seen.overview.workers) else "rtq_scheduler"
        yield schedule_missed.incident(
            since=slot,
            queue=queue,
            schedule=name[:MAX_NAME],
            count=len(missed),
            also=("scheduler_fails",) if is_scheduled else ("scheduler_missing",),
            command="" if is_scheduled else f"python manage.py {command} --queues {queue}",
        )


@SYSTEM.warning(
    _("Schedule invalid"),
    ngettext_lazy(
        "%(count)s schedule cannot run: %(schedule)s. %(error)s.",
        "%(count)s schedules cannot run, %(schedule)s among them. %(error)s.",
        "number",
    ),
    Action.SHOW_SCHEDULES,
)
def schedule_invalid(seen: Seen) -> Iterator[Incident]:
    """Schedules that cannot run, as one incident."""
    broken = sorted((each.name, each.problem) for each in seen.schedules if each.entry is None and each.enabled)
    for name, problem in broken[:1]:
        error = problem[:MAX_PROBLEM].rstrip(".")
        yield schedule_invalid.incident(schedule=name[:MAX_NAME], error=error, count=len(broken))


def is_let_go(status: ScheduleStatus, overview: Overview) -> bool:
    """Whether the scheduler that is there now will not fire a missed slot, as the schedule says."""
    skips = status.entry is not None and status.entry.schedule.missed == "skip"
    return skips and has_scheduler(overview, status.queue)


def has_scheduler(overview: Overview, queue: str) -> bool:
    """Whether a scheduler has looked at a queue lately."""
    return queue not in overview.unscheduled and any(row.details.name == queue for row in overview.queues)
