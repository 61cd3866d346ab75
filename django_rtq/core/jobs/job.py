"""A job, its states and its id, and the text of a new one."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import cache
from typing import Any

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:

    class StrEnum(str, Enum):
        """As in Python 3.11: str() of a member is its value."""

        __str__ = str.__str__


#: How long a job waits whose task a worker does not know, until a worker claims it again.
PARK_SECONDS = 30.0


class JobState(StrEnum):
    """The state of a job."""

    SCHEDULED = "scheduled"  # delayed; has not run yet
    QUEUED = "queued"  # waits for a worker
    RUNNING = "running"  # a worker holds it under a lease
    RETRYING = "retrying"  # has failed and waits for its next attempt
    SUCCEEDED = "succeeded"  # done
    DEAD = "dead"  # a dead letter: never runs again unless it is requeued
    CANCELLED = "cancelled"  # before it ran, or stopped while it ran
    EXPIRED = "expired"  # no worker started it in time

    @property
    def is_final(self) -> bool:
        """Whether the job is over. Only dead jobs can be requeued."""
        return self in (JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED)


class CancelAnswer(StrEnum):
    """The result of a cancel request."""

    CANCELLED = "cancelled"  # the job will not run (again)
    ASKED = "asked"  # the job is running and was asked to stop: it is cancelled when it does, unless it succeeds before


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call of a task, as a worker runs it."""

    id: str
    task: str  # the task's full name, as registered
    queue: str
    client: str = ""
    priority: int = 0
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    attempt: int = 1  # the number of this run, from 1
    failures: int = 0  # earlier runs that ended in an exception or a timeout
    max_crashes: int = 3
    ready_ms: int = 0  # from when on it may start; the clock of the Redis server
    expires_ms: int = 0  # must not start later; 0: never expires
    headers: dict[str, Any] = field(default_factory=dict)  # of using() and middleware
    options: dict[str, Any] = field(default_factory=dict)  # options of the task that using() changed for this call


LOG_FIELDS = ("job_id", "task", "queue", "client", "attempt")  # attributes of log records


def about(job: Job) -> dict[str, Any]:
    """The `extra` of a log line about one job."""
    return {"job_id": job.id, "task": job.task, "queue": job.queue, "client": job.client, "attempt": job.attempt}


def about_jobs(job_ids: Sequence[str], **known: str) -> dict[str, Any]:
    """That of several jobs: `job_ids`, and `job_id` if it is one. `known` holds for all of them."""
    one = {"job_id": job_ids[0]} if len(job_ids) == 1 else {}
    return {"job_ids": list(job_ids), **one, **known}


def write_body(task: str, arguments: str, options: str = "") -> str:
    """The JSON of a record, behind its header: see record.py. `arguments` and `options` are members of JSON objects,
    without the braces.

    Written by hand, because the arguments are JSON already and the name of a task needs no escapes.
    """
    return f'{{"task":"{task}"{"," if arguments else ""}{arguments}{"," if options else ""}{options}}}'


def write_record(priority: int, max_crashes: int, made_ms: int, client: str, body: str, expires_ms: int = 0) -> str:
    """The record of a job that may start at once. Scripts write all but large ones that do not expire."""
    return f"{priority} {max_crashes} {made_ms} {expires_ms} {client}\n{body}"


def new_job_id(shard: int = 0) -> str:
    """A new UUID of version 7 (RFC 9562) in 32 hexadecimal digits, which sorts by time; with_shard() of it.

    The caller makes it: a counter in Redis would be one round trip more, and an enqueue that is repeated two jobs.

    Ids of one process grow, also within a millisecond: jobs that are sorted by id are in the order of their calls. The
    random bits are the system's, because a project may seed Python's random module.
    """
    try:
        end = _random_ends.pop()
    except IndexError:
        end, *others = _new_random_ends(_ENDS_AT_ONCE)
        _random_ends.extend(others)
    digits = f"{_clock.take(1):015x}"
    if shard:
        return f"{digits[:12]}8{digits[12:]}{_shard_digits(shard)}{end[4:]}"
    return f"{digits[:12]}7{digits[12:]}{end}"


def new_job_ids(count: int) -> list[str]:
    """Ids for jobs that are enqueued together, as from so many calls of new_job_id()."""
    first = _clock.take(count)
    ticks = [f"{tick:015x}" for tick in range(first, first + count)]
    return [f"{tick[:12]}7{tick[12:]}{end}" for tick, end in zip(ticks, _new_random_ends(count), strict=True)]


def with_shard(job_id: str, shard: int) -> str:
    """An id of new_job_id() that leads to a shard: a UUID of version 8. Those of shard 0 stay as they are."""
    return f"{job_id[:12]}8{job_id[13:16]}{_shard_digits(shard)}{job_id[20:]}" if shard else job_id


@cache
def _shard_digits(shard: int) -> str:
    return f"{_IN_SHARD}{shard:03x}"


def shard_in(id: Any) -> int:
    """The shard that the id of a job or of a workflow leads to; 0 for ids that name none."""
    if not isinstance(id, str):
        return 0
    if len(id) == 32 and id[12] == "8":
        digits = id[17:20] if id[16] == _IN_SHARD else id[13:16]  # those of a member begin with those of its workflow
    elif len(id) == 12:
        digits = id[:3]
    else:
        return 0
    try:
        number = int(digits, 16)
    except ValueError:
        return 0
    return number if number < _NO_SHARD else 0


def is_member(job_id: bytes | str) -> bool:
    """Whether a job belongs to a workflow: then its id has version 8, but does not name a shard. As in members.lua."""
    return len(job_id) == 32 and job_id[12:13] in (b"8", "8") and job_id[16:17] in (b"8", b"9", "8", "9")


def made_ms(job_id: str) -> int:
    """When the id was made, ms by the clock of its machine; 0 if it does not say."""
    try:
        return int(job_id[:12], 16)
    except ValueError:
        return 0


def _new_random_ends(count: int) -> list[str]:
    """The last 16 digits of ids: the variant and 62 random bits."""
    digits = os.urandom(8 * count).hex()
    return [f"{'89ab'[int(digits[i], 16) & 3]}{digits[i + 1 : i + 16]}" for i in range(0, len(digits), 16)]


class _Clock:
    """Tells the times of ids, none twice, in ticks of 1/4096 ms. Any thread and any signal handler may use it."""

    def __init__(self) -> None:
        self._latest = 0
        self.new_lock()

    def new_lock(self) -> None:
        """In a child process: another thread of the parent may have held the lock at the fork."""
        self._lock = threading.RLock()

    def take(self, count: int) -> int:
        """The first of so many ticks."""
        with self._lock:
            tick = time.time_ns() * 128 // 31250
            if self._latest - _SECOND < tick <= self._latest:  # the system's clock is coarse, or was put back a little
                tick = self._latest + 1
            self._latest = tick + count - 1
        return tick


def held_since(score: float) -> int | None:
    """Since when a job waits that its paused task holds, ms, by its score in `scheduled`. None: it waits for a time."""
    return int(score % _PAUSE) if score >= HELD_FROM else None


def moment(ms: int | None) -> datetime | None:
    """Milliseconds since 1970 as an aware datetime; None if they are None or out of range."""
    try:
        return None if ms is None else EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None


def made_at(job_id: str) -> datetime | None:
    """The time in an id of new_job_id(), or of a job of a workflow; None for other ids."""
    if len(job_id) != 32 or job_id[12] not in "78":
        return None
    try:
        return _from_timestamp(int(job_id[:12], 16) / 1000, _UTC)
    except (ValueError, OverflowError, OSError):
        return None


def clock_moment(ms: float) -> datetime:
    """moment() for the time of a clock, which is never out of range."""
    at = moment(int(ms))
    assert at is not None
    return at


_NO_SHARD = 0x800  # ids of workflows of shard 0 begin with it, or more
_IN_SHARD = "b"  # the variant of ids with a shard; those of members of workflows, of version 8 too, have "8" or "9"
_ENDS_AT_ONCE = 100
_random_ends: list[str] = []  # each for one id to come: one system call for a hundred ids
_SECOND = 1000 * 4096  # ticks
_clock = _Clock()
os.register_at_fork(after_in_child=_random_ends.clear)
os.register_at_fork(after_in_child=_clock.new_lock)

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_PAUSE = 10**13  # scores in `scheduled` that belong to one paused task; see held_jobs.lua
HELD_FROM = 100 * _PAUSE  # the first of all
_from_timestamp, _UTC = datetime.fromtimestamp, timezone.utc  # found faster right after a round trip
