"""What delay() gives back: a job, seen from outside."""

from __future__ import annotations

import math
from typing import Any

from asgiref.sync import sync_to_async

from django_rtq.broker.broker import get_broker
from django_rtq.broker.control import CancelAnswer
from django_rtq.broker.wait import wait_for_end
from django_rtq.exceptions import JobFailed, ResultTimeout, WrongState
from django_rtq.inspector.details import JobDetails
from django_rtq.inspector.inspector import get_inspector
from django_rtq.jobs.job import JobState


class JobHandle:
    """A job of a queue. It asks Redis when it is asked, until the job is over."""

    __slots__ = ("_details", "duplicate", "id", "queue_name")

    def __init__(self, job_id: str, queue_name: str, *, duplicate: bool = False) -> None:
        self.id = job_id
        self.queue_name = queue_name
        self.duplicate = duplicate  # it was there before the call: a unique job of which no second may live
        self._details: JobDetails | None = None

    def refresh(self) -> JobDetails:
        """Ask Redis for all that is known. Raises JobNotFound when it is finished and was forgotten."""
        self._details = get_inspector().find(self.id, self.queue_name)
        return self._details

    @property
    def state(self) -> JobState:
        """Where the job is now. Raises JobNotFound."""
        return self._latest().state

    @property
    def result(self) -> Any:
        """What the task returned. Raises WrongState while, or because, there is no such thing."""
        details = self._latest()
        if details.state is not JobState.SUCCEEDED:
            raise WrongState(self.id, f"has no result: it is {details.state}.")
        if details.seconds is None:
            raise WrongState(self.id, "has no result: it succeeded, but its task keeps none (result_ttl=0).")
        if details.is_result_lost:
            raise WrongState(self.id, "has no result: it succeeded, but the result was lost with its process.")
        return details.result

    def wait(self, timeout: float | None = None) -> Any:
        """Block until the job is over, at most `timeout` seconds, and return its result: None where none is kept.

        None also for a result that was lost. Nothing is polled. Raises ResultTimeout; JobFailed when the job is dead,
        cancelled or expired; JobNotFound when it was thrown away or forgotten; BrokerUnavailable. A job that waits for
        another one holds its place in the worker meanwhile: do not let jobs wait for jobs of the same queue.
        """
        _check_timeout(timeout)
        if not wait_for_end(get_broker(), self.queue_name, self.id, timeout):
            raise ResultTimeout(self.id, f"is not over after {timeout:g} s.")
        details = self._latest()
        if details.state is JobState.SUCCEEDED:
            return details.result
        raise JobFailed(self.id, _why_failed(details))

    async def await_end(self, timeout: float | None = None) -> Any:
        """wait() for async code."""
        return await sync_to_async(self.wait, thread_sensitive=False)(timeout)

    def cancel(self, *, terminate: bool = False) -> CancelAnswer:
        """Take the job out before it runs ("cancelled"), or ask it to stop when it runs ("asked").

        With `terminate`, the process that runs it is killed. A job that was asked never runs again: it ends as
        cancelled, unless it succeeds before it stops. Raises WrongState when it is over, JobNotFound.
        """
        return get_inspector().cancel(self.id, self.queue_name, terminate=terminate)

    def _latest(self) -> JobDetails:
        if self._details is not None and self._details.state in (JobState.SUCCEEDED, JobState.CANCELLED):
            return self._details
        return self.refresh()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and (self.id, self.queue_name) == (other.id, other.queue_name)

    def __hash__(self) -> int:
        return hash((self.id, self.queue_name))

    def __repr__(self) -> str:
        return f"<JobHandle {self.id} in {self.queue_name}>"


def _check_timeout(timeout: Any) -> None:
    if timeout is not None and not (isinstance(timeout, int | float) and math.isfinite(timeout)):
        raise ValueError(f"timeout is {timeout!r}, but has to be a number of seconds, or None: for ever.")


def _why_failed(details: JobDetails) -> str:
    if details.state not in (JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED):
        return f"was dead, and somebody has requeued it: it is {details.state} now."
    if not details.errors:
        return f"is {details.state}."
    last = details.errors[-1]
    error = ": ".join(str(last[key]) for key in ("error_class", "error") if last.get(key))
    traceback = f"\n\n{last['traceback']}" if last.get("traceback") else ""
    return f"is {details.state}. {error}{traceback}"
