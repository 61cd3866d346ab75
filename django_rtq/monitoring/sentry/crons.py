"""Check-ins for the cron monitors of Sentry, of jobs that schedules start.

One firing of a schedule is one check-in, and the ID of its job is the ID of the check-in: retries and other processes
go on with it. The slug and the configuration of the monitor are headers of the job. See
https://develop.sentry.dev/sdk/telemetry/check-ins/.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal
from sentry_sdk.crons import MonitorStatus, capture_checkin

from django_rtq import signals
from django_rtq.broker.brokers import get_broker
from django_rtq.broker.task_backends import places
from django_rtq.conf.config import get_config
from django_rtq.jobs.job import Job, made_ms
from django_rtq.scheduler.registry import ScheduledTask, load_schedules, schedules_in

if TYPE_CHECKING:
    from sentry_sdk._types import MonitorConfig

    from django_rtq.schedules import Schedule
    from django_rtq.tasks.task import Task

#: True: monitor all schedules. A mapping: these, with what their monitors get beside the schedule. False: none.
MonitorSchedules = bool | Mapping[str, "MonitorConfig"]

SLUG, CONFIG = "sentry-monitor-slug", "sentry-monitor-config"  # headers of jobs
MAX_SLUG_LENGTH = 50  # a limit of Sentry
_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000))

logger = logging.getLogger("django_rtq")
_runs: dict[str, tuple[Job, float]] = {}  # in this process: ID of the job -> the job, and when this run began


def connect(chosen: MonitorSchedules) -> None:
    """Send the ends of check-ins from now on. May be called twice."""
    receivers: dict[Signal, Callable[..., None]] = {
        signals.job_succeeded: _end_succeeded,
        signals.job_buried: _end_buried,
        signals.job_expired: _end_expired,
        signals.job_cancelled: _end_cancelled,
        signals.job_retried: _forget_run,
        signals.job_suspended: _forget_run,
        signals.job_stale: _forget_stale,
    }
    for signal, receiver in receivers.items():
        signal.connect(receiver, dispatch_uid="rtq-sentry-crons")

    def end_crashed(*, queue: str, buried_ids: Sequence[str], **kwargs: object) -> None:
        _end_crashed(chosen, queue, buried_ids)

    signals.job_reclaimed.connect(end_crashed, weak=False, dispatch_uid="rtq-sentry-crons")


def monitor_headers(chosen: MonitorSchedules, schedule: Schedule, task: Task[Any, Any]) -> dict[str, Any]:
    """The headers of jobs of a schedule; empty if it is not monitored."""
    more = chosen.get(schedule.name) if isinstance(chosen, Mapping) else {} if chosen else None
    when = None if more is None else _monitor_schedule(schedule)
    if more is None or when is None:
        return {}
    config = {"schedule": when, "timezone": schedule.zone if schedule.expression else "UTC", **_margins(task), **more}
    return {SLUG: slug_of(schedule.name), CONFIG: config}


def slug_of(name: str) -> str:
    """The slug of the monitor of a schedule: at most 50 lower-case letters, digits, `_` and `-`.

    If it is not the name itself, a digest of the name makes it differ from that of similar names.
    """
    slug = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")
    if slug == name and 0 < len(slug) <= MAX_SLUG_LENGTH and not slug.isdigit():
        return slug
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{slug[: MAX_SLUG_LENGTH - 9].strip('-') or 'schedule'}-{digest}"


def begin_run(job: Job) -> None:
    """Send that a run of a monitored schedule has begun. Nothing for other jobs."""
    if SLUG in job.headers:
        _runs[job.id] = job, time.perf_counter()
        _send(job.id, job.headers, MonitorStatus.IN_PROGRESS)


def _end(job: Job, status: str) -> None:
    """Send the end of the check-in. Sentry measures one that had several runs, from the beginning of the first."""
    _, began = _runs.pop(job.id, (None, None))
    if SLUG in job.headers:
        duration = time.perf_counter() - began if began is not None and job.attempt == 1 else None
        _send(job.id, job.headers, status, duration)


def _send(job_id: str, headers: Mapping[str, Any], status: str, duration: float | None = None) -> None:
    capture_checkin(
        monitor_slug=headers[SLUG],
        check_in_id=job_id,
        status=status,
        duration=duration,
        monitor_config=headers.get(CONFIG),
    )


# -- receivers of signals


def _end_succeeded(*, job: Job, **kwargs: object) -> None:
    _end(job, MonitorStatus.OK)


def _end_buried(*, job: Job | None, **kwargs: object) -> None:
    if job is not None:
        _end(job, MonitorStatus.ERROR)


def _end_expired(*, job: Job, **kwargs: object) -> None:
    if job.attempt > 1:  # else it has no check-in, and Sentry says that it was missed
        _end(job, MonitorStatus.ERROR)


def _end_cancelled(*, job_id: str, **kwargs: object) -> None:
    job, _ = _runs.get(job_id, (None, None))
    if job is not None:
        _end(job, MonitorStatus.ERROR)


def _end_crashed(chosen: MonitorSchedules, queue: str, buried_ids: Sequence[str]) -> None:
    """End the check-ins of jobs whose processes have crashed too often: their IDs say of which schedules they are."""
    entries = _schedules_of(queue) if buried_ids else []
    for job_id in buried_ids:
        for entry in entries:
            if entry.job_id(made_ms(job_id)) == job_id:
                headers = monitor_headers(chosen, entry.schedule, entry.task)
                if headers:
                    _send(job_id, headers, MonitorStatus.ERROR)


def _forget_run(*, job_id: str, **kwargs: object) -> None:
    _runs.pop(job_id, None)


def _forget_stale(*, job_ids: Sequence[str], **kwargs: object) -> None:
    for job_id in job_ids:
        _runs.pop(job_id, None)


# -- the configuration of monitors


def _schedules_of(queue: str) -> list[ScheduledTask]:
    config = get_config()
    loaded = [load_schedules(schedules_in(place, config), get_broker(place).schedules.read()) for place in places()]
    return [entry for schedules in loaded for entry in schedules.entries if entry.task.queue == queue]


def _monitor_schedule(schedule: Schedule) -> dict[str, Any] | None:
    """When Sentry expects check-ins. None, and a warning, for intervals that it does not know."""
    if schedule.expression:
        fields = schedule.expression.split()
        if len(fields) == 6 and not fields[0].isdigit():
            _warn("it may run more than once a minute", schedule.name)
            return None
        return {"type": "crontab", "value": " ".join(fields[-5:])}
    for unit, unit_ms in _UNITS:
        if schedule.every_ms % unit_ms == 0:
            return {"type": "interval", "value": schedule.every_ms // unit_ms, "unit": unit}
    seconds = schedule.every_ms / 1000
    _warn("its interval of %g s is not a whole number of minutes", schedule.name, seconds)
    return None


@cache
def _warn(reason: str, name: str, *values: float) -> None:
    """Once in a process."""
    logger.warning(f"schedule %s is not monitored by Sentry: {reason}", name, *values)


def _margins(task: Task[Any, Any]) -> dict[str, int]:
    """Minutes: until when a run may begin, from `expires` of the task, and how long it may take, from `time_limit`."""
    margins = {}
    expires = task.expires.total_seconds() if isinstance(task.expires, timedelta) else task.expires
    if isinstance(expires, int | float):
        margins["checkin_margin"] = max(1, math.ceil(expires / 60))
    limit = task.time_limit or get_config().time_limit
    if limit is not None:
        margins["max_runtime"] = max(1, math.ceil((limit + get_config().kill_grace_seconds) / 60))
    return margins
