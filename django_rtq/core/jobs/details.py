"""What is told of one job: its record, its state and its outcome, as plain values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.failure import Attempt, read_failures
from django_rtq.core.jobs.job import JobState, held_since, made_at, moment, shard_in
from django_rtq.core.jobs.outcome import read_outcome
from django_rtq.core.jobs.record import HeldEntry, Wait, read_leniently

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
    worker: str = ""  # the worker that runs it, or with which it succeeded
    version: str = ""  # of the project there, for a job that succeeded
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

    @property
    def shard(self) -> int | None:
        """Where it is, as its id says; None without RTQ["SHARDS"]."""
        return None if get_config().shards is None else shard_in(self.id)

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


def read_found(job_id: str, queue: str, reply: Sequence[Any]) -> JobDetails | None:
    """The job in a reply of the script `find_job`. None if nothing is known of it.

    Fields that cannot be read are left empty: every job can be shown.
    """
    record, due, died, failed, crashed, errors, outcome, no_outcome, worker, entry, lease, now_ms, *more = reply
    wish, progress, waits = more
    if not record:
        return _finished(job_id, queue, outcome, now_ms, has_no_outcome=bool(no_outcome))
    failures, crashes = int(failed or 0), int(crashed or 0)
    header, call = read_leniently(record)
    held = HeldEntry.read(entry) if entry else HeldEntry(failures + crashes)
    is_held = bool(due) and held_since(float(due)) is not None
    wait = Wait.read(waits) if due else None
    if wait and wait.due_ms != float(due):
        wait = None  # it is over
    if died:
        state = JobState.DEAD
    elif worker:
        state = JobState.RUNNING
    elif due:
        state = JobState.SCHEDULED if is_held or wait or not (failures or errors) else JobState.RETRYING
    else:
        state = JobState.QUEUED
    return JobDetails(
        id=job_id,
        queue=queue,
        state=state,
        client=header.get("client", ""),
        priority=header.get("priority", 0),
        max_crashes=header.get("max_crashes", 0),
        ready_at=moment(header.get("ready_ms")),
        expires_at=moment(header.get("expires_ms") or None),
        task=str(call.get("task", "")),
        args=call.get("args", []),
        kwargs=call.get("kwargs", {}),
        headers=call.get("headers", {}),
        options={name: value for name, value in call.items() if name not in _CALL},
        failures=failures,
        crashes=crashes,
        attempt=held.attempt,
        errors=read_failures(errors),
        due_at=None if is_held else _score_moment(due),
        is_held=is_held,
        is_asleep=bool(wait and not wait.event),
        event=wait.event.partition(" ")[2] if wait else "",
        died_at=_score_moment(died),
        worker=worker.decode(),
        progress=Progress.read(progress) if progress else None,
        is_stopping=bool(wish and worker),
        made_at=made_at(job_id),
        claimed_at=moment(held.claimed_ms),
        lease_left_seconds=(float(lease) - now_ms) / 1000 if lease else None,
    )


def _finished(job_id: str, queue: str, text: bytes, now_ms: int, *, has_no_outcome: bool) -> JobDetails | None:
    """None after the outcome's time, though Redis may keep it a little longer, and if it was dropped before."""
    finished_ms, keep_ms, outcome = read_outcome(text)
    if has_no_outcome:  # it succeeded lately
        made = made_at(job_id)
        return JobDetails(id=job_id, queue=queue, state=JobState.SUCCEEDED, has_call=False, made_at=made)
    if finished_ms + keep_ms <= now_ms:
        return None
    known = outcome.get("state") in list(JobState)
    call = outcome.get("call", {})  # for tasks with keep_args; and the rest for tasks with keeps_call
    return JobDetails(
        id=job_id,
        queue=queue,
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
        version=str(outcome.get("version", "")),
        made_at=made_at(job_id),
        finished_at=moment(finished_ms),
        forgotten_at=moment(finished_ms + keep_ms),
    )


def _score_moment(score: bytes) -> datetime | None:
    return moment(int(float(score))) if score else None


_CALL = ("task", "args", "kwargs", "headers")  # in a record, beside the options
