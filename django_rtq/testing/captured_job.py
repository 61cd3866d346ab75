"""A job that captured() has taken instead of Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django_rtq.core.broker.messages import NewJob
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState, made_at, moment


@dataclass(kw_only=True)
class CapturedJob:
    """A job as delay() made it. Its arguments have been JSON, so a tuple is a list."""

    id: str
    queue: str
    task: str  # the full name
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    client: str
    priority: int
    run_after: timedelta | datetime | None  # a timedelta, or if the call gave a datetime, an aware one
    expires: timedelta | datetime | None
    at_front: bool
    headers: Mapping[str, Any]
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
        return f"{call_text(self.task, self.args, self.kwargs)} in {', '.join(details)}"


def details_of(job: Any, **known: Any) -> JobDetails:
    """What a handle tells of a CapturedJob or FinishedJob."""
    return JobDetails(
        id=job.id,
        queue=job.queue,
        state=job.state,
        task=job.task,
        client=job.client,
        args=list(job.args),
        kwargs=dict(job.kwargs),
        headers=dict(job.headers),
        made_at=made_at(job.id),
        **known,
    )


def call_text(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A call as in Python code."""
    return f"{task}({', '.join([*map(repr, args), *(f'{name}={value!r}' for name, value in kwargs.items())])})"


def read_moment(text: str) -> timedelta | datetime | None:
    """The value that moment_argument() wrote."""
    if not text:
        return None
    return timedelta(milliseconds=int(text)) if text.startswith("+") else moment(int(text))
