"""What is told of one job: its record, its state and its outcome, as plain values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django_rtq.core.jobs.failure import Attempt, read_failures
from django_rtq.core.jobs.job import JobState, held_since, made_at, moment
from django_rtq.core.jobs.outcome import read_outcome
from django_rtq.core.jobs.record import Header, HeldEntry, Wait, read_leniently

#: A time that is later than another one by no more than this need not be later: each machine has its own clock.
CLOCKS_DIFFER = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress that a job reported."""

    done: float
    total: float | None  # None: unknown
    text: str
    at: datetime | None

    @classmethod
    def read(cls, line: bytes) -> Progress | None:
        """Read a stored line; None if it is invalid."""
        at, _, body = line.partition(b" ")
        try:
            call = json.loads(body)
            total = None if call["total"] is None else float(call["total"])
            return cls(done=float(call["done"]), total=total, text=call["text"], at=moment(int(at)))
        except (ValueError, KeyError, TypeError, OverflowError):
            return None

    def __str__(self) -> str:
        share = f"{self.done:g}" if not self.total else f"{self.done:g}/{self.total:g}"
        return f"{share} {self.text}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """All that is known of a job."""

    id: str
    queue: str
    state: JobState
    task: str = ""
    client: str = ""
    priority: int = 0
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, Any] = field(default_factory=dict)
    has_call: bool = True  # its arguments are known: after a success only with keep_args
    options: dict[str, Any] = field(default_factory=dict)  # options of this call that differ from those of its task
    failures: int = 0
    crashes: int = 0
    attempt: int = 0  # the number of the last or current run; 0: it has not run
    errors: list[dict[str, Any]] = field(default_factory=list)  # the last failures, the newest last
    result: Any = None
    #: It succeeded, but its process was killed before the result was reported, and there was no room to keep it.
    is_result_lost: bool = False
    seconds: float | None = None  # how long the last run took, for a job that succeeded
    ready_at: datetime | None = None  # when it first became ready, or was requeued
    due_at: datetime | None = None  # when a scheduled or retrying job becomes due
    is_held: bool = False  # it is scheduled, and waits because its task is, or was, paused: it is never due
    is_asleep: bool = False  # it is scheduled, and sleeps until then
    event: str = ""  # it is scheduled, and waits for this event, until then at the latest
    died_at: datetime | None = None
    worker: str = ""  # the worker that runs it
    progress: Progress | None = None  # of its last run
    is_stopping: bool = False  # it runs, and a cancel was requested
    max_crashes: int = 0
    made_at: datetime | None = None  # from its id
    expires_at: datetime | None = None  # must not start later
    claimed_at: datetime | None = None
    lease_left_seconds: float | None = None  # of its worker; below 0: it is about to be reclaimed
    finished_at: datetime | None = None
    forgotten_at: datetime | None = None  # when its outcome expires
    log: Sequence[Any] = ()  # the last lines that it logged, the newest last; only where it is asked for
    steps: Sequence[Any] = ()  # finished ones, in the order in which they ended; likewise
    shard: int | None = None  # where it is, if all shards are read at once

    @property
    def newest_error(self) -> tuple[str, str]:
        """Class and message of the newest failure; empty if unknown."""
        newest = self.errors[-1] if self.errors else {}
        return str(newest.get("error_class") or ""), str(newest.get("error") or "")

    @property
    def attempts(self) -> list[Attempt]:
        """The failed runs that are kept, the newest last."""
        return [Attempt.read(error) for error in self.errors]

    @property
    def requeued_at(self) -> datetime | None:
        """When it was last requeued, after the first of the failed runs that are kept; None: it was not."""
        ended = next((attempt.ended_at for attempt in self.attempts if attempt.ended_at is not None), None)
        is_later = ended is not None and self.ready_at is not None and self.ready_at - ended > CLOCKS_DIFFER
        return self.ready_at if is_later else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RawJob:
    """What the script `find_job`, or a pipeline over many jobs, read of one job."""

    id: str
    queue: str
    record: bytes = b""
    due: bytes = b""
    died: bytes = b""
    failures: bytes = b""
    crashes: bytes = b""
    errors: bytes = b""
    outcome: bytes = b""
    no_outcome: bytes | int = b""  # 1: it succeeded lately, and has no outcome
    worker: bytes = b""
    held: bytes = b""
    wish: bytes = b""
    progress: bytes = b""
    wait: bytes = b""
    lease: bytes = b""
    now_ms: int = 0

    def details(self) -> JobDetails | None:
        """None if nothing is known of the job. Fields that cannot be read are left empty: every job can be shown."""
        if not self.record:
            return self._finished()
        failures, crashes = int(self.failures or 0), int(self.crashes or 0)
        header, call = read_leniently(self.record)
        held = HeldEntry.read(self.held) if self.held else HeldEntry(failures + crashes)
        return JobDetails(
            id=self.id,
            queue=self.queue,
            state=self._state(has_failed=bool(failures or self.errors)),
            **_of_header(header),
            task=str(call.get("task", "")),
            args=call.get("args", []),
            kwargs=call.get("kwargs", {}),
            headers=call.get("headers", {}),
            options={name: value for name, value in call.items() if name not in _CALL},
            failures=failures,
            crashes=crashes,
            attempt=held.attempt,
            errors=read_failures(self.errors),
            due_at=None if self._is_held else _score_moment(self.due),
            is_held=self._is_held,
            is_asleep=bool(self._wait and not self._wait.event),
            event=self._wait.event.partition(" ")[2] if self._wait else "",
            died_at=_score_moment(self.died),
            worker=self.worker.decode(),
            progress=Progress.read(self.progress) if self.progress else None,
            is_stopping=bool(self.wish and self.worker),
            made_at=made_at(self.id),
            claimed_at=moment(held.claimed_ms),
            lease_left_seconds=(float(self.lease) - self.now_ms) / 1000 if self.lease else None,
        )

    def _state(self, *, has_failed: bool) -> JobState:
        if self.died:
            return JobState.DEAD
        if self.worker:
            return JobState.RUNNING
        if self.due:
            return JobState.RETRYING if has_failed and not self._is_held and not self._wait else JobState.SCHEDULED
        return JobState.QUEUED

    @property
    def _wait(self) -> Wait | None:
        """What it waits for now, in `scheduled`."""
        wait = Wait.read(self.wait) if self.due else None
        return wait if wait and wait.due_ms == float(self.due) else None

    @property
    def _is_held(self) -> bool:
        return bool(self.due) and held_since(float(self.due)) is not None

    def _finished(self) -> JobDetails | None:
        """None after the outcome's time, though Redis may keep it a little longer, and if it was dropped before."""
        finished_ms, keep_ms, outcome = read_outcome(self.outcome)
        if self.no_outcome:
            made = made_at(self.id)
            return JobDetails(id=self.id, queue=self.queue, state=JobState.SUCCEEDED, has_call=False, made_at=made)
        if finished_ms + keep_ms <= self.now_ms:
            return None
        known = outcome.get("state") in list(JobState)
        call = outcome.get("call", {})  # for tasks with keep_args; and the rest for tasks with keeps_call
        return JobDetails(
            id=self.id,
            queue=self.queue,
            state=JobState(outcome["state"]) if known else JobState.SUCCEEDED,
            task=str(outcome.get("task") or ""),
            client=str(outcome.get("client") or ""),
            attempt=attempt if isinstance(attempt := outcome.get("attempt"), int) else 0,
            args=call.get("args", []),
            kwargs=call.get("kwargs", {}),
            headers=call.get("headers", {}),
            has_call="call" in outcome,
            errors=[failure for failure in outcome.get("failures", ()) if isinstance(failure, dict)],
            claimed_at=moment(outcome.get("claimed_ms")),
            result=outcome.get("result"),
            is_result_lost=bool(outcome.get("is_lost")),
            seconds=outcome.get("seconds"),
            worker=str(outcome.get("worker", "")),
            made_at=made_at(self.id),
            finished_at=moment(finished_ms),
            forgotten_at=moment(finished_ms + keep_ms),
        )


def _of_header(header: Header | None) -> dict[str, Any]:
    """What the header of a record says of a job; nothing if it cannot be read."""
    if header is None:
        return {}
    return {
        "client": header.client,
        "priority": header.priority,
        "max_crashes": header.max_crashes,
        "ready_at": moment(header.ready_ms),
        "expires_at": moment(header.expires_ms) if header.expires_ms else None,
    }


def _score_moment(score: bytes) -> datetime | None:
    return moment(int(float(score))) if score else None


def read_found(job_id: str, queue: str, reply: Sequence[Any]) -> JobDetails | None:
    """The job in a reply of the script `find_job`. None if nothing is known of it."""
    return RawJob(id=job_id, queue=queue, **dict(zip(_FIND, reply, strict=True))).details()


_CALL = ("task", "args", "kwargs", "headers")  # in a record, beside the options
_FIND = "record due died failures crashes errors outcome no_outcome worker held lease now_ms wish progress wait".split()
