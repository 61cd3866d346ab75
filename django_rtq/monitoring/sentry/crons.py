"""Check-ins for the cron monitors of Sentry: one for each run of a job that a schedule has started."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sentry_sdk.crons import monitor

from django_rtq.core.jobs.job import Job
from django_rtq.exceptions import JobSuspended, Retry

if TYPE_CHECKING:
    from django_rtq.core.schedules import Schedule

#: True: monitor all schedules. A mapping: these, with what their monitors get beside the schedule. False: none.
MonitorSchedules = bool | Mapping[str, Mapping[str, Any]]
SLUG, CONFIG = "sentry-monitor-slug", "sentry-monitor-config"  # headers of jobs
_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000))


def monitor_headers(chosen: MonitorSchedules, schedule: Schedule) -> dict[str, Any]:
    """The headers of jobs of a schedule; empty if it is not monitored."""
    more = chosen.get(schedule.name) if isinstance(chosen, Mapping) else {} if chosen else None
    unit, unit_ms = next((each for each in _UNITS if schedule.every_ms % each[1] == 0), ("", 1))
    if more is None or not unit:  # Sentry knows whole minutes only
        return {}
    when = {"type": "interval", "value": schedule.every_ms // unit_ms, "unit": unit}
    if schedule.expression:
        when = {"type": "crontab", "value": " ".join(schedule.expression.split()[-5:])}
    zone = schedule.zone if schedule.expression else "UTC"
    return {SLUG: slug_of(schedule.name), CONFIG: {"schedule": when, "timezone": zone, **more}}


def slug_of(name: str) -> str:
    """The slug of a monitor: at most 50 of a-z, 0-9, `_`, `-`. A digest keeps those of similar names apart."""
    slug = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return (
        name if slug == name and not slug.isdigit() and 0 < len(slug) <= 50 else f"{slug[:40] or 'schedule'}-{digest}"
    )


@contextmanager
def checked_in(job: Job) -> Iterator[None]:
    """Send the begin and the end of a run. A run that sleeps or asks for a retry has not failed."""
    goes_on: Retry | JobSuspended | None = None
    with monitor(job.headers[SLUG], job.headers.get(CONFIG)):
        try:
            yield
        except (Retry, JobSuspended) as error:
            goes_on = error
    if goes_on is not None:
        raise goes_on
