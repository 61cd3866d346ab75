"""The two clocks of a project, which cannot be compared where USE_TZ is off: that of Redis, and that of the database.

No other module asks what time it is. What is compared with times of jobs, workers and schedules is aware, in each
project. What is stored in columns of the database, or compared with them, is naive where USE_TZ is off.
"""

from __future__ import annotations

from datetime import datetime, timezone

from django.utils import timezone as django_timezone


def utc_now() -> datetime:
    """Now, aware: for times of Redis, and of the public API."""
    return datetime.now(timezone.utc)


def database_now() -> datetime:
    """Now, for a column of the database."""
    return django_timezone.now()
