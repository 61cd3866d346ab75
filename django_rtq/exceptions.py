"""Every error of the package, in one tree.

RTQError
├── ConfigurationError      a setting is missing, unknown or wrong
├── InvalidTask             a task or one of its options makes no sense
├── TaskNotFound            no task of that name is registered here
├── PayloadError            arguments or a result that cannot be stored
│   ├── Unserializable      a value that JSON cannot carry
│   └── PayloadTooLarge     more than RTQ["MAX_PAYLOAD_BYTES"]
├── BrokerError             Redis did not do what it was asked
│   ├── BrokerUnavailable   no answer, or not now
│   │   └── BrokerRefused   wrong credentials, database number or TLS certificate: waiting does not help
│   └── BrokerFull          Redis is out of memory
├── JobError                about one job
│   ├── JobNotFound
│   ├── WrongState
│   ├── DuplicateJob        delay(): a job like it lives, and unique_on_conflict is "raise"
│   ├── JobFailed           wait(): the job is over, and has no result
│   ├── ResultTimeout        wait(): the job is not over yet
│   └── WorkerLost          what a dead letter says that took its workers down
├── WorkerNotFound          no worker of that name is known
├── LeaseNotExpired             its jobs cannot be taken away from it
├── TimeLimitExceeded       raised inside a job that ran too long
├── Retry                   raised by a task: once more, later
└── Bury                    raised by a task: never again

JobCancelled is no RTQError, but a BaseException: raised inside a job that was asked to stop.
"""

from __future__ import annotations

import math
from datetime import timedelta

from django.core.exceptions import ImproperlyConfigured

_TEN_YEARS = 10 * 365 * 86_400.0


class RTQError(Exception):
    """Root of all errors of this package."""


class ConfigurationError(RTQError, ImproperlyConfigured):
    """A setting is missing, unknown or wrong. The message says which, and what to write instead."""


class InvalidTask(RTQError, ValueError):
    """A task is declared, or called, with options that make no sense."""


class TaskNotFound(RTQError, LookupError):
    """No task of that name is registered in this process."""


class PayloadError(RTQError):
    """The arguments or the result of a job cannot be stored."""


class Unserializable(PayloadError, TypeError):
    """A value that JSON cannot carry. The message names the argument."""


class PayloadTooLarge(PayloadError, ValueError):
    """More bytes than RTQ["MAX_PAYLOAD_BYTES"]."""


class BrokerError(RTQError):
    """Redis answered with an error."""


class BrokerUnavailable(BrokerError):
    """Redis did not answer, or cannot serve now. The command may or may not have run."""


class BrokerRefused(BrokerUnavailable):
    """Redis, or TLS on the way to it, refuses us: wrong credentials, database number or certificate.

    Waiting does not help unless somebody changes the server. A worker that meets it when it starts exits with code 1.
    """


class BrokerFull(BrokerError):
    """Redis is out of memory and refused to take more. Nothing was stored."""


class JobError(RTQError):
    """Something is wrong with one job."""

    def __init__(self, job_id: str, problem: str) -> None:
        super().__init__(f"Job {job_id}: {problem}")
        self.job_id = job_id


class JobNotFound(JobError, LookupError):
    """No job of that id is known: it never was, or it is finished and forgotten."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id, "not found. It never was, or it is finished and was forgotten.")


class WrongState(JobError):
    """The job is not in a state in which this can be done."""


class DuplicateJob(JobError):
    """Raised by delay() with unique_on_conflict="raise": a job like it lives. `job_id` is that one's."""

    def __init__(self, job_id: str, task: str) -> None:
        super().__init__(job_id, f"{task} is unique, and this job lives, so there is no second one like it.")


class JobFailed(JobError):
    """The job is over and has no result. The message ends with the traceback of its last run, where there is one."""


class ResultTimeout(JobError, TimeoutError):
    """The job was not over in time. It goes on."""


class LeaseNotExpired(RTQError):
    """The lease of the worker lasts: it is not dead, or not for long enough."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"Worker {worker}: its lease is not over, so it may still be working.")
        self.worker = worker


class WorkerLost(RTQError):
    """The job took its worker down, or was lost with it, more often than max_crashes allows."""


class WorkerNotFound(RTQError, LookupError):
    """No worker of that name is known: it is gone, or began a moment ago."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"Worker {worker}: not known. It is gone, or began a moment ago.")


class TimeLimitExceeded(RTQError):
    """Raised inside a job that runs longer than its time_limit."""


class JobCancelled(BaseException):
    """Raised inside a job that was asked to stop, once. A task may raise it as well: its job ends as cancelled.

    A BaseException, so that an `except Exception` around a step of the work does not take it for a failure of it.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the job was asked to stop")


class Retry(RTQError):
    """Raise it in a task to run the job once more, after ``after`` (seconds or timedelta).

    Without ``after`` the task's backoff decides. It counts as a failed attempt.
    Raises ValueError when ``after`` is no time to wait.
    """

    def __init__(self, reason: str = "", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason or "the task asked to be retried")
        self.after_seconds = after.total_seconds() if isinstance(after, timedelta) else after
        if after is not None and not _is_wait(self.after_seconds):
            raise ValueError(f"Retry(after={after!r}): it has to be seconds or a timedelta, of at most ten years.")


def _is_wait(seconds: object) -> bool:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return is_number and -math.inf < seconds <= _TEN_YEARS  # type: ignore[operator]


class Bury(RTQError):
    """Raise it in a task to give the job up at once: it becomes a dead letter."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the task asked to be buried")
