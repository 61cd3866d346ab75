"""The two clocks of a project, which cannot be compared where USE_TZ is off: that of Redis, and that of the database.

No other module asks what time it is. What is compared with times of jobs, workers and schedules is aware, in each
project. What is stored in columns of the database, or compared with them, is naive where USE_TZ is off.
"""

from __future__ import annotations

from datetime import datetime, timezone

from django.utils import timezone as django_timezone

from django_rtq.conf.config import uses_time_zones


def utc_now() -> datetime:
    """Now, aware: for times of Redis, and of the public API."""
    return datetime.now(timezone.utc)


def database_now() -> datetime:
    """Now, for a column of the database."""
    return django_timezone.now()


def for_database(moment: datetime) -> datetime:
    """An aware time, for a column of the database."""
    return moment if uses_time_zones() else django_timezone.make_naive(moment, django_timezone.get_default_timezone())


def from_database(moment: datetime) -> datetime:
    """The time in a column of the database, aware."""
    if django_timezone.is_aware(moment):
        return moment
    return django_timezone.make_aware(moment, django_timezone.get_default_timezone())
