"""Which dead letters a command is about, and what it tells of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from heapq import merge
from itertools import islice
from typing import Any

from django_rtq.exceptions import WrongState
from django_rtq.inspector.details import JobDetails
from django_rtq.inspector.inspector import Inspector
from django_rtq.jobs.job import JobState

_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The newest failure of a job."""

    error_class: str = ""  # with its module
    error: str = ""
    traceback: str = ""

    @classmethod
    def newest_of(cls, job: JobDetails) -> Failure:
        """Empty where nothing is known."""
        newest: object = job.errors[-1] if job.errors else {}
        if not isinstance(newest, dict):
            return cls(error=str(newest))
        return cls(**{name: str(newest.get(name) or "") for name in ("error_class", "error", "traceback")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which dead letters are meant: those for which all of this is true. Empty: all."""

    task: str = ""  # its full name, or the end of it
    error: str = ""  # the class, in full or the end of it; or a part of the message

    def fits(self, job: JobDetails) -> bool:
        """Whether this one is meant."""
        if self.task and not _is_or_ends(job.task, self.task):
            return False
        if not self.error:
            return True
        failure = Failure.newest_of(job)
        return _is_or_ends(failure.error_class, self.error) or self.error in failure.error


def find_dead(inspector: Inspector, queues: Sequence[str], wanted: Filter, limit: int | None) -> Iterator[JobDetails]:
    """The dead letters that are meant, of all these queues together, the newest first."""
    found = merge(*map(inspector.dead, queues), key=lambda job: job.died_at or _LONG_AGO, reverse=True)
    return islice(filter(wanted.fits, found), limit)


def find_dead_one(inspector: Inspector, job_id: str, queue: str | None) -> JobDetails:
    """One dead letter; of any queue, when none is named. Raises JobNotFound, and WrongState if it lives."""
    job = inspector.find(job_id, queue)
    if job.state is not JobState.DEAD:
        raise WrongState(job_id, f"is not a dead letter: it is {job.state}, in queue {job.queue}.")
    return job


def described(job: JobDetails) -> dict[str, Any]:
    """A redacted dead letter as it is printed as JSON."""
    failure = Failure.newest_of(job)
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "client": job.client,
        "args": job.args,
        "kwargs": job.kwargs,
        "attempts": job.failures + job.crashes,
        "error_class": failure.error_class,
        "error": failure.error,
        "traceback": failure.traceback,
        "died_at": job.died_at.isoformat() if job.died_at else None,
    }


def _is_or_ends(full: str, name: str) -> bool:
    return full == name or full.endswith(f".{name}")
