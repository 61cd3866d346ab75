"""A job, its states, and the record in which Redis keeps it.

A record is one header line and then JSON: ``<priority> <max_crashes> <ready_ms> <expires_ms> <client>\\n{…}``.
Scripts read the header and never the JSON; what changes while a job lives lies beside the record.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:

    class StrEnum(str, Enum):
        """The one of Python 3.11: its text is its value."""

        __str__ = str.__str__


class JobState(StrEnum):
    """Where a job is in its life."""

    SCHEDULED = "scheduled"  # waits for its time; has not run yet
    QUEUED = "queued"  # waits for a worker
    RUNNING = "running"  # a worker holds it under a lease
    RETRYING = "retrying"  # has failed; waits for its next attempt
    SUCCEEDED = "succeeded"  # done
    DEAD = "dead"  # will not run again unless a person requeues it
    CANCELLED = "cancelled"  # taken out before it ran, or stopped while it ran
    EXPIRED = "expired"  # nobody started it before its time was over

    @property
    def is_final(self) -> bool:
        """Nothing will happen any more, unless a person requeues it."""
        return self in (JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call of a task, as the worker that runs it sees it."""

    id: str
    task: str  # the task's full name, as registered
    queue: str
    client: str = ""
    priority: int = 0
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    attempt: int = 1  # the number of this run, from 1
    failures: int = 0  # earlier runs that ended in an exception or time-out
    max_crashes: int = 3
    ready_ms: int = 0  # when it could have started first; the Redis server's clock
    expires_ms: int = 0  # not to be started later; 0: never expires
    options: dict[str, Any] = field(default_factory=dict)  # what this call changed of its task's options


def new_job_id() -> str:
    """A UUID of version 7 (RFC 9562) in 32 hexadecimal digits: sorted by time, never used twice.

    Random bits come from the system, because a project may seed Python's own generator.
    """
    try:
        noise = _noises.pop()
    except IndexError:
        first, *others = (_new_noise() for _ in range(_NOISES_AT_ONCE))
        _noises.extend(others)
        noise = first
    return f"{time.time_ns() // 1_000_000:012x}{noise}"


def _new_noise() -> str:
    """All of an id but its time: the version, 12 random bits, the variant, 62 random bits."""
    digits = os.urandom(10).hex()
    return f"7{digits[:3]}{'89ab'[int(digits[3], 16) & 3]}{digits[4:19]}"


def moment(ms: int | None) -> datetime | None:
    """Milliseconds of the Redis server's clock as an aware datetime; None for what no datetime can hold."""
    try:
        return None if ms is None else _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None


def clock_moment(ms: float) -> datetime:
    """moment() of what a clock has shown: there is one."""
    at = moment(int(ms))
    assert at is not None
    return at


_NOISES_AT_ONCE = 100
_noises: list[str] = []  # for ids to come, each for one
os.register_at_fork(after_in_child=_noises.clear)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
