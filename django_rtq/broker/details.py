"""What the inspector tells: queues, workers and jobs as plain values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django_rtq import payload
from django_rtq.exceptions import PayloadError
from django_rtq.job import Header, JobState, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDetails:
    """How full a queue is."""

    name: str
    paused: bool
    queued: int
    scheduled: int
    retrying: int
    running: int
    dead: int
    oldest_seconds: float | None  # how long the job that waits longest has been waiting; None: none waits
    clients: int  # lanes with work: clients, counted once for each priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job said that it is."""

    done: float
    total: float | None  # None: nobody knows
    text: str
    at: datetime | None

    @classmethod
    def read(cls, line: bytes) -> Progress | None:
        """None for a line that no version of this package wrote."""
        at, _, body = line.partition(b" ")
        try:
            found = json.loads(body)
            return cls(done=found["done"], total=found["total"], text=found["text"], at=moment(int(at)))
        except (ValueError, KeyError, TypeError):
            return None

    def __str__(self) -> str:
        share = f"{self.done:g}" if not self.total else f"{self.done:g}/{self.total:g}"
        return f"{share} {self.text}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A line of a processing list."""

    id: str
    queue: str
    task: str
    client: str
    attempt: int
    seconds: float  # since it was claimed
    progress: Progress | None = None  # what it said of itself
    is_stopping: bool = False  # it was asked to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDetails:
    """One process that runs jobs."""

    name: str
    host: str
    pid: int
    queues: list[str]
    running: list[RunningJob]
    last_seen_seconds: float | None  # since its supervisor renewed its lease; None: it has not said anything yet
    last_claim_seconds: float | None  # since it got an answer from Redis when it asked for work
    jobs_done: int
    supervisor_name: str = ""  # of the rtq_worker that it belongs to; "": not known (yet)
    is_quiet: bool = False  # it claims nothing, by order


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """All that is known of one job."""

    id: str
    queue: str
    state: JobState
    task: str = ""
    client: str = ""
    priority: int = 0
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # what this call changed of its task's options
    failures: int = 0
    crashes: int = 0
    attempt: int = 0  # the number of the last or present run; 0: has not run
    errors: list[dict[str, Any]] = field(default_factory=list)  # the last failures, the newest last
    result: Any = None
    seconds: float | None = None  # how long the last run took, for a job that succeeded
    ready_at: datetime | None = None  # when it could have started first
    due_at: datetime | None = None  # when it may start, for a job that waits for its time
    died_at: datetime | None = None
    worker: str = ""  # who runs it
    progress: Progress | None = None  # what its last run said of itself
    is_stopping: bool = False  # it runs, and was asked to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class RawJob:
    """What the script `find`, or a pipeline over many jobs, read of one job."""

    id: str
    queue: str
    record: bytes = b""
    due: bytes = b""
    died: bytes = b""
    failures: bytes = b""
    crashes: bytes = b""
    errors: bytes = b""
    outcome: bytes = b""
    finished: bytes = b""
    worker: bytes = b""
    held: bytes = b""
    wish: bytes = b""
    progress: bytes = b""

    def details(self) -> JobDetails | None:
        """None when nothing is known of the job. What cannot be read is left empty: nothing is ever hidden."""
        if not self.record:
            return self._finished() if self.outcome or self.finished else None
        failures, crashes = int(self.failures or 0), int(self.crashes or 0)
        header, call = _read(self.record)
        attempt = int(self.held.split(b" ")[0]) if self.held else failures + crashes
        return JobDetails(
            id=self.id,
            queue=self.queue,
            state=self._state(has_failed=bool(failures or self.errors)),
            task=str(call.get("task", "")),
            client=header.client if header else "",
            priority=header.priority if header else 0,
            args=call.get("args", []),
            kwargs=call.get("kwargs", {}),
            options={name: value for name, value in call.items() if name not in ("task", "args", "kwargs")},
            failures=failures,
            crashes=crashes,
            attempt=attempt,
            errors=read_errors(self.errors),
            ready_at=moment(header.ready_ms) if header else None,
            due_at=moment(int(float(self.due))) if self.due else None,
            died_at=moment(int(float(self.died))) if self.died else None,
            worker=self.worker.decode(),
            progress=Progress.read(self.progress) if self.progress else None,
            is_stopping=bool(self.wish and self.worker),
        )

    def _state(self, *, has_failed: bool) -> JobState:
        if self.died:
            return JobState.DEAD
        if self.worker:
            return JobState.RUNNING
        if self.due:
            return JobState.RETRYING if has_failed else JobState.SCHEDULED
        return JobState.QUEUED

    def _finished(self) -> JobDetails:
        try:
            outcome = payload.loads(self.outcome) if self.outcome else {}
        except PayloadError:
            outcome = {}
        if not isinstance(outcome, dict):
            outcome = {}
        known = outcome.get("state") in list(JobState)
        return JobDetails(
            id=self.id,
            queue=self.queue,
            state=JobState(outcome["state"]) if known else JobState.SUCCEEDED,
            task=outcome.get("task", ""),
            client=outcome.get("client", ""),
            attempt=outcome.get("attempt", 0),
            result=outcome.get("result"),
            seconds=outcome.get("seconds"),
        )


def _read(record: bytes) -> tuple[Header | None, dict[str, Any]]:
    line, _, body = record.partition(b"\n")
    try:
        header = Header.read(line)
    except ValueError:
        return None, {}
    try:
        call = payload.loads(body)
    except PayloadError:
        return header, {}
    return header, call if isinstance(call, dict) else {}


def read_errors(lines: bytes) -> list[dict[str, Any]]:
    """The failures that are kept of a job, the newest last."""
    errors = []
    for line in lines.splitlines():
        try:
            error = json.loads(line)
        except ValueError:
            error = None
        errors.append(error if isinstance(error, dict) else {"error": line.decode(errors="replace")})
    return errors
