"""Runs a task of django.tasks in a worker: its context, its signals, and results as plain JSON."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.dispatch import Signal, receiver

from django_rtq.backend.compat import (
    DjangoContext,
    DjangoResult,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from django_rtq.backend.results import result_of, set_fields
from django_rtq.backend.rtq_task import RTQTask, task_in
from django_rtq.core import signals
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.one_job import access_to_jobs
from django_rtq.core.broker.task_backends import alias_of, place_of_job, places
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.context import current_job
from django_rtq.core.jobs.context import running as current_run
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.failure import read_failures
from django_rtq.core.jobs.job import Job, JobState, is_member, made_at
from django_rtq.core.tasks import registry
from django_rtq.core.tasks.task import Task
from django_rtq.core.worker.outcome import failure_line
from django_rtq.databases.clocks import utc_now
from django_rtq.exceptions import BrokerError, JobNotFound


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkerTask(Task[Any, Any]):
    """What workers run for a task of django.tasks."""

    django_task: RTQTask

    @cached_property
    def body(self) -> Callable[..., Any]:
        """What workers call: the function between Django's signals, which are sent outside of the transaction of
        exactly_once."""
        task, func = self.django_task, self.func
        if self.exactly_once:  # which stores the value
            func = self._in_transaction(wraps(func)(lambda *args, **kwargs: normalize_json(self.func(*args, **kwargs))))

        def call(*args: Any, **kwargs: Any) -> Any:
            result, args = _start(task, args, kwargs)
            return _succeed(task, result, func(*args, **kwargs))

        async def acall(*args: Any, **kwargs: Any) -> Any:
            result, args = await sync_to_async(_start)(task, args, kwargs)
            value = await func(*args, **kwargs)
            return await sync_to_async(_succeed)(task, result, value)

        return acall if inspect.iscoroutinefunction(func) else call


def _succeed(task: RTQTask, result: DjangoResult, value: Any) -> Any:
    """Send task_finished. Returns the value as plain JSON. Raises TypeError and PayloadError: the job failed."""
    value = normalize_json(value)
    text = serializer.dumps(value)
    serializer.check_size(task.module_path, "the result has", text, get_config().max_payload_bytes, "")
    set_fields(result, _return_value=value)
    _send_finished(task, result, TaskResultStatus.SUCCESSFUL)
    return value


def _start(task: RTQTask, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[DjangoResult, tuple[Any, ...]]:
    """Send task_started. Returns the result of the run, and what its function gets."""
    run = current_run()
    job = run.context
    if job.attempt > 1:
        run.history = _failures(job.queue_name, job.job_id, job.backend).decode()
    task = task_in(task, job.backend)
    details = JobDetails(
        id=job.job_id,
        queue=job.queue_name,
        state=JobState.RUNNING,
        args=list(args[1:] if task.takes_context else args),
        kwargs=kwargs,
        attempt=job.attempt,
        errors=read_failures(run.history.encode()),
        worker=job.worker,
        made_at=made_at(job.job_id),
        claimed_at=utc_now(),
    )
    result = result_of(task, details)
    _send(task_started, task, result)
    if task.takes_context:
        args = (DjangoContext(task_result=result), *args[1:])
    return result, args


def _failures(queue: str, job_id: str, backend: str) -> bytes:
    """Earlier failures, as the Redis of the job has them; none if it cannot be reached."""
    with suppress(BrokerError):
        return get_broker(place_of_job(backend, job_id)).errors(queue, job_id.encode())
    return b""


def _send_finished(task: RTQTask, result: DjangoResult, status: Any) -> None:
    set_fields(result, status=status, finished_at=utc_now())
    _send(task_finished, task, result)


def _send(signal: Signal, task: RTQTask, result: DjangoResult) -> None:
    answers = signal.send_robust(type(task.get_backend()), task_result=result)
    signals.log_receiver_errors(answers, job_id=result.id)


# -- jobs that end without a value


def _django_task(name: str) -> RTQTask | None:
    task = registry.known_task(name)
    return task.django_task if isinstance(task, WorkerTask) else None


def _find(job_id: str, queue: str) -> tuple[JobDetails | None, str]:
    """A job and the place where it is: the signals do not say in which Redis."""
    for place in places():
        with suppress(BrokerError, JobNotFound):
            return access_to_jobs(place).find(job_id, queue), alias_of(place)
    return None, ""


@receiver(signals.job_buried)
def send_failed(*, job: Job | None, error: BaseException, **kwargs: Any) -> None:
    """Send task_finished for a job that failed for good, with the exception as the current one, as Django does."""
    if job is None or (task := _django_task(job.task)) is None:
        return
    running = current_job()
    is_running = running is not None and running.job_id == job.id
    worker, place = (running.worker, running.backend) if running and is_running else ("", _place_of(job))
    now_ms = time.time_ns() // 1_000_000
    last = failure_line(error, at_ms=now_ms, attempt=job.attempt, worker=worker)
    earlier = _failures(job.queue, job.id, place) + b"\n" if job.attempt > 1 else b""
    errors = read_failures(earlier + last.encode())
    result = result_of(task_in(task, place), _ended(job, JobState.DEAD, attempt=job.attempt, errors=errors))
    trace = error.__traceback__
    try:
        raise error
    except BaseException:  # noqa: BLE001 - receivers look at sys.exc_info()
        _send_finished(task, result, TaskResultStatus.FAILED)
    finally:
        error.__traceback__ = trace


@receiver(signals.job_expired)
def send_expired(*, job: Job, **kwargs: Any) -> None:
    """Send task_finished for a job that was not started in time."""
    if task := _django_task(job.task):
        task = task_in(task, _place_of(job))
        _send_finished(task, result_of(task, _ended(job, JobState.EXPIRED)), TaskResultStatus.FAILED)


def _place_of(job: Job) -> str:
    return _find(job.id, job.queue)[1] if len(places()) > 1 else ""


def _ended(job: Job, state: JobState, **known: Any) -> JobDetails:
    return JobDetails(
        id=job.id, queue=job.queue, state=state, args=job.args, kwargs=job.kwargs, made_at=made_at(job.id), **known
    )


@receiver(signals.job_reclaimed)
def send_crashed(*, buried_ids: Sequence[str], queue: str, **kwargs: Any) -> None:
    """Send task_finished for jobs that are dead because their worker processes died."""
    for job_id in buried_ids:
        send_ended(job_id=job_id, queue=queue, state=JobState.DEAD)


@receiver(signals.job_cancelled)
def send_ended(*, job_id: str, queue: str, state: JobState = JobState.CANCELLED, **kwargs: Any) -> None:
    """Send task_finished for a job that was cancelled, or is dead without a run that tells of it."""
    if is_member(job_id):  # steps of workflows are tasks of django_rtq
        return
    details, place = _find(job_id, queue)
    if details is not None and (task := _django_task(details.task)):
        task = task_in(task, place)
        _send_finished(task, result_of(task, replace(details, state=state)), TaskResultStatus.FAILED)
