"""TaskResult of django.tasks, made of what Redis knows of a job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django_rtq.backend.compat import DjangoResult, DjangoTask, TaskError, TaskResultStatus, normalize_json
from django_rtq.inspector.details import JobDetails
from django_rtq.jobs.failure import Attempt
from django_rtq.jobs.job import JobState
from django_rtq.jobs.serializer import DisplayEncoder

_STATUSES = {
    JobState.SCHEDULED: TaskResultStatus.READY,
    JobState.QUEUED: TaskResultStatus.READY,
    JobState.RETRYING: TaskResultStatus.READY,
    JobState.RUNNING: TaskResultStatus.RUNNING,
    JobState.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    JobState.DEAD: TaskResultStatus.FAILED,
    JobState.CANCELLED: TaskResultStatus.FAILED,
    JobState.EXPIRED: TaskResultStatus.FAILED,
}
#: The errors of jobs that have ended without one.
CANCELLED = TaskError(
    exception_class_path="django_rtq.exceptions.JobCancelled", traceback="JobCancelled: The job was cancelled.\n"
)
EXPIRED = TaskError(
    exception_class_path="django_rtq.exceptions.JobFailed", traceback="JobFailed: No worker started the job in time.\n"
)
_ENDED = {JobState.CANCELLED: CANCELLED, JobState.EXPIRED: EXPIRED}


def result_of(task: DjangoTask, details: JobDetails) -> DjangoResult:
    """The result of a job.

    Redis keeps the last five failures of a job. `worker_ids` has "" for earlier attempts, so that `attempts` is right.
    """
    attempts, last_start = details.attempts, None
    starts = [each.started_at or each.ended_at for each in attempts]
    workers = [each.worker for each in attempts]
    if details.state in (JobState.RUNNING, JobState.SUCCEEDED):
        workers.append(details.worker)
        last_start = _last_start(details)
    ended = _ENDED.get(details.state)
    result = DjangoResult(
        task=task,
        id=details.id,
        status=_STATUSES[details.state],
        enqueued_at=details.made_at,
        started_at=starts[0] if starts else last_start,
        last_attempted_at=last_start or (starts[-1] if starts else None),
        finished_at=details.finished_at or details.died_at,
        args=_plain(details.args),
        kwargs=_plain(details.kwargs),
        backend=task.backend,
        errors=[_error_of(each) for each in attempts] + ([ended] if ended else []),
        worker_ids=[""] * (details.attempt - len(workers)) + workers,
    )
    if details.state is JobState.SUCCEEDED:
        set_fields(result, _return_value=_plain(details.result))
    return result


def new_result(task: DjangoTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> DjangoResult:
    """The result of a job that is not enqueued yet. Raises TypeError for arguments that are not JSON."""
    return DjangoResult(
        task=task,
        id="",
        status=TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        last_attempted_at=None,
        finished_at=None,
        args=list(args),
        kwargs=dict(kwargs),
        backend=task.backend,
        errors=[],
        worker_ids=[],
    )


def set_fields(result: DjangoResult, **values: Any) -> None:
    """Set fields of a TaskResult, which is frozen."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def _error_of(attempt: Attempt) -> TaskError:
    """The error of a failed attempt. A crash has no traceback: then it is the message."""
    path = attempt.error_class or "django_rtq.exceptions.JobFailed"
    text = attempt.traceback or f"{path.rpartition('.')[2]}: {attempt.error}\n"
    return TaskError(exception_class_path=path, traceback=text)


def _last_start(details: JobDetails) -> datetime | None:
    if details.claimed_at is not None or details.finished_at is None:
        return details.claimed_at
    return details.finished_at - timedelta(seconds=details.seconds or 0)


def _plain(value: Any) -> Any:
    """A value as TaskResult takes it. delay() also takes dates, decimals and the like: these become text."""
    try:
        return normalize_json(value)
    except TypeError:
        return json.loads(json.dumps(value, cls=DisplayEncoder))
