"""A job in a test: as captured() has taken it instead of Redis, or one run of it and what became of that."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django_rtq.core.broker.messages import NewJob
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import Job, JobState, made_at, moment
from django_rtq.core.worker.outcome import ACKED, UNKNOWN_TASK, VERBS, Outcome, failure_line
from django_rtq.core.worker.run import Run
from django_rtq.exceptions import PayloadError


@dataclass(kw_only=True)
class _TestedJob:
    id: str
    queue: str
    task: str  # the full name; "" if the record cannot be read
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    client: str
    headers: Mapping[str, Any]

    def details(self, state: JobState, **known: Any) -> JobDetails:
        """What a handle tells of it."""
        return JobDetails(
            id=self.id,
            queue=self.queue,
            state=state,
            task=self.task,
            client=self.client,
            args=list(self.args),
            kwargs=dict(self.kwargs),
            headers=dict(self.headers),
            made_at=made_at(self.id),
            **known,
        )

    def __str__(self) -> str:
        return call_text(self.task, self.args, self.kwargs)


@dataclass(kw_only=True)
class CapturedJob(_TestedJob):
    """A job as delay() made it. Its arguments have been JSON, so a tuple is a list."""

    priority: int
    run_after: timedelta | datetime | None  # a timedelta, or if the call gave a datetime, an aware one
    expires: timedelta | datetime | None
    at_front: bool
    options: Mapping[str, Any] = field(repr=False)  # max_attempts and the like, if using() changed them
    is_cancelled: bool = False
    events: list[tuple[str, Any]] = field(default_factory=list, repr=False)  # what send() gave it: name and value

    @classmethod
    def read(cls, queue: str, job: NewJob) -> CapturedJob:
        """From the values that would go to Redis."""
        call = serializer.loads(job.body)
        return cls(
            id=job.id,
            queue=queue,
            task=call.pop("task"),
            args=call.pop("args", []),
            kwargs=call.pop("kwargs", {}),
            client=job.client,
            priority=job.priority,
            run_after=read_moment(job.due),
            expires=read_moment(job.expires),
            at_front=bool(job.at_front),
            headers=call.pop("headers", {}),
            options=call,
        )

    @property
    def state(self) -> JobState:
        """QUEUED, SCHEDULED or CANCELLED."""
        if self.is_cancelled:
            return JobState.CANCELLED
        return JobState.QUEUED if self.run_after is None else JobState.SCHEDULED

    def __str__(self) -> str:
        details = [f"queue {self.queue!r}"]
        details += [f"client {self.client!r}"] if self.client else []
        details += [f"run_after {self.run_after}"] if self.run_after is not None else []
        details += [f"headers {self.headers}"] if self.headers else []
        details += ["cancelled"] if self.is_cancelled else []
        return f"{super().__str__()} in {', '.join(details)}"


_AFTER = "succeeded retrying dead expired cancelled scheduled retrying".split()
_STATES = dict(zip((*VERBS, UNKNOWN_TASK), map(JobState, _AFTER), strict=True))


@dataclass(kw_only=True)
class FinishedJob(_TestedJob):
    """One run of a job: eager() and drain() return a list of them."""

    attempt: int  # the number of the run, from 1
    state: JobState  # SUCCEEDED, RETRYING, DEAD, CANCELLED, EXPIRED or SCHEDULED: it goes on later
    result: Any = None  # what the task returned, after it has been JSON
    error: BaseException | None = field(default=None, repr=False)  # what the run raised

    @classmethod
    def read(cls, run: Run, outcome: Outcome) -> FinishedJob:
        """From a run of a worker."""
        try:
            job = run.job
        except (PayloadError, ValueError):  # its record cannot be read, as the error says
            job = Job(id=run.job_id.decode(errors="replace"), task="", queue=run.queue, attempt=run.attempt)
        stored = outcome.text if outcome.verb == ACKED else ""
        return cls(
            id=job.id,
            queue=job.queue,
            task=job.task,
            args=job.args,
            kwargs=job.kwargs,
            client=job.client,
            headers=job.headers,
            attempt=job.attempt,
            state=_STATES[outcome.verb],
            result=serializer.loads(stored)["result"] if stored else None,
            error=outcome.error,
        )

    def details_after(self, outcome: Outcome, run: Run, earlier: Sequence[dict[str, Any]]) -> JobDetails:
        """What a handle tells of the job after this run. `earlier`: the failures before it."""
        errors, now_ms = list(earlier), run.now_ms + int(run.seconds * 1000)
        if self.error is not None:
            line = failure_line(self.error, at_ms=now_ms, attempt=run.attempt, worker=run.worker, seconds=run.seconds)
            errors.append(serializer.loads(line))
        is_dead = self.state is JobState.DEAD
        return self.details(
            self.state,
            failures=len(errors),
            attempt=self.attempt,
            errors=errors,
            result=self.result,
            seconds=run.seconds if outcome.verb == ACKED and outcome.text else None,
            worker=run.worker,
            died_at=moment(now_ms) if is_dead else None,
            finished_at=moment(now_ms) if self.state.is_final and not is_dead else None,
        )

    def __str__(self) -> str:
        failure = f": {type(self.error).__name__}: {self.error}" if self.error is not None else ""
        return f"{super().__str__()}, attempt {self.attempt}: {self.state}{failure}"


def raise_foreign_error(error: BaseException | None) -> None:
    """Raise what must not count as the failure of a job in a test: Ctrl-C, pytest.skip(), endless recursion."""
    is_of_job = isinstance(error, Exception | SystemExit | CancelledError | None)
    if error is not None and (not is_of_job or isinstance(error, RecursionError)):
        raise error


def call_text(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A call as in Python code."""
    return f"{task}({', '.join([*map(repr, args), *(f'{name}={value!r}' for name, value in kwargs.items())])})"


def read_moment(text: str) -> timedelta | datetime | None:
    """The value that moment_argument() wrote."""
    if not text:
        return None
    return timedelta(milliseconds=int(text)) if text.startswith("+") else moment(int(text))
