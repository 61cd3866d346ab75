"""TaskResult of django.tasks, made of what Redis knows of a job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from django_rtq.backend.compat import DjangoResult, DjangoTask, TaskError, TaskResultStatus, normalize_json
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.failure import Attempt
from django_rtq.core.jobs.job import JobState, made_at
from django_rtq.core.jobs.serializer import DisplayEncoder

_ROUNDING = timedelta(milliseconds=2)
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
    starts = [_start_after(details.made_at, attempt.started_at or attempt.ended_at) for attempt in attempts]
    workers = [attempt.worker for attempt in attempts]
    if details.state in (JobState.RUNNING, JobState.SUCCEEDED):
        workers.append(details.worker)
        last_start = _start_after(details.made_at, _last_start(details))
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
        errors=[_error_of(attempt) for attempt in attempts] + ([ended] if ended else []),
        worker_ids=[""] * (details.attempt - len(workers)) + workers,
    )
    if details.state is JobState.SUCCEEDED:
        set_fields(result, _return_value=_plain(details.result))
    return result


def new_result(task: DjangoTask, job_id: str, args: list[Any], kwargs: dict[str, Any]) -> DjangoResult:
    """The result of a job that was just enqueued, with arguments of plain_arguments().

    Its fields are set one by one: TaskResult() would check the arguments once more, which takes 15 µs.
    """
    result: DjangoResult = _new(DjangoResult)
    values = (task, job_id, _READY, made_at(job_id), args, kwargs, task.backend, [], [], *_NONE)
    for name, value in zip(_NAMES, values):  # noqa: B905 - strict=True would look at the lengths each time
        _set(result, name, value)
    return result


_GIVEN = ("task", "id", "status", "enqueued_at", "args", "kwargs", "backend", "errors", "worker_ids")
_OTHERS = tuple({each.name for each in fields(DjangoResult)}.difference(_GIVEN))
_NONE = (None,) * len(_OTHERS)
_NAMES = (*_GIVEN, *_OTHERS)
_READY = TaskResultStatus.READY
_PLAIN = {str, int, float, bool, type(None)}
_new, _set = object.__new__, object.__setattr__


def plain_arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call as plain JSON. Raises TypeError."""
    if _PLAIN.issuperset(map(type, args)) and (not kwargs or _PLAIN.issuperset(map(type, kwargs.values()))):
        return list(args), dict(kwargs)  # normalize_json() would not change them
    plain_args: Any = normalize_json(list(args))
    plain_kwargs: Any = normalize_json(dict(kwargs))
    return plain_args, plain_kwargs


def set_fields(result: DjangoResult, **values: Any) -> None:
    """Set fields of a TaskResult, which is frozen."""
    for name, value in values.items():
        _set(result, name, value)


def _error_of(attempt: Attempt) -> TaskError:
    """The error of a failed attempt. A crash has no traceback: then it is the message."""
    path = attempt.error_class or "django_rtq.exceptions.JobFailed"
    text = attempt.traceback or f"{path.rpartition('.')[2]}: {attempt.error}\n"
    return TaskError(exception_class_path=path, traceback=text)


def _last_start(details: JobDetails) -> datetime | None:
    if details.claimed_at is not None or details.finished_at is None:
        return details.claimed_at
    return details.finished_at - timedelta(seconds=details.seconds or 0)


def _start_after(made: datetime | None, start: datetime | None) -> datetime | None:
    """When a run started. Times are stored in whole milliseconds: it would seem to start before it was enqueued."""
    if made is None or start is None:
        return start
    return made if start < made <= start + _ROUNDING else start


def _plain(value: Any) -> Any:
    """A value as TaskResult takes it. delay() also takes dates, decimals and the like: these become text."""
    try:
        return normalize_json(value)
    except TypeError:
        return json.loads(json.dumps(value, cls=DisplayEncoder))
