"""A run of a job in a test, and what became of it."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import Job, JobState, moment
from django_rtq.core.worker.outcome import (
    Acked,
    Buried,
    Cancelled,
    Expired,
    Outcome,
    Retried,
    Suspended,
    UnknownTask,
    failure_line,
)
from django_rtq.core.worker.process.run import Run
from django_rtq.exceptions import PayloadError
from django_rtq.testing.captured_job import call_text, details_of


@dataclass(kw_only=True)
class FinishedJob:
    """One run of a job: eager() and drain() return a list of them."""

    id: str
    queue: str
    task: str  # the full name; "" if the record cannot be read
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    client: str
    headers: Mapping[str, Any]
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
        return cls(
            id=job.id,
            queue=job.queue,
            task=job.task,
            args=job.args,
            kwargs=job.kwargs,
            client=job.client,
            headers=job.headers,
            attempt=job.attempt,
            state=_STATES[type(outcome)],
            result=_result_of(outcome),
            error=outcome.error if isinstance(outcome, Retried | Buried | UnknownTask) else None,
        )

    def __str__(self) -> str:
        failure = f": {type(self.error).__name__}: {self.error}" if self.error is not None else ""
        return f"{call_text(self.task, self.args, self.kwargs)}, attempt {self.attempt}: {self.state}{failure}"


def _result_of(outcome: Outcome) -> Any:
    if not isinstance(outcome, Acked) or not outcome.result:
        return None
    return serializer.loads(outcome.result)["result"]


_STATES: Mapping[type, JobState] = {
    Acked: JobState.SUCCEEDED,
    Retried: JobState.RETRYING,
    UnknownTask: JobState.RETRYING,
    Buried: JobState.DEAD,
    Cancelled: JobState.CANCELLED,
    Expired: JobState.EXPIRED,
    Suspended: JobState.SCHEDULED,
}


def details_after(finished: FinishedJob, outcome: Outcome, run: Run, earlier: Sequence[dict[str, Any]]) -> JobDetails:
    """What a handle tells of the job after this run. `earlier`: the failures before it."""
    errors, now_ms = list(earlier), run.now_ms + int(run.seconds * 1000)
    if finished.error is not None:
        line = failure_line(finished.error, at_ms=now_ms, attempt=run.attempt, worker=run.worker, seconds=run.seconds)
        errors.append(serializer.loads(line))
    is_dead = finished.state is JobState.DEAD
    return details_of(
        finished,
        failures=len(errors),
        attempt=finished.attempt,
        errors=errors,
        result=finished.result,
        seconds=run.seconds if isinstance(outcome, Acked) and outcome.result else None,
        worker=run.worker,
        died_at=moment(now_ms) if is_dead else None,
        finished_at=moment(now_ms) if finished.state.is_final and not is_dead else None,
    )


def raise_foreign_error(error: BaseException | None) -> None:
    """Raise what must not count as the failure of a job in a test: Ctrl-C, pytest.skip(), endless recursion."""
    is_of_job = isinstance(error, Exception | SystemExit | CancelledError | None)
    if error is not None and (not is_of_job or isinstance(error, RecursionError)):
        raise error
