"""All exceptions of the package.

RTQError
├── ConfigurationError      a setting is missing, unknown or invalid
├── RedisNotAllowed         a test would reach the project's Redis
├── InvalidTask             a task, one of its options or a schedule is invalid
├── TaskNotFound            no task with this name is registered in this process
├── PayloadError            arguments or a result that cannot be stored
│   ├── Unserializable      a value that cannot be written as JSON
│   └── PayloadTooLarge     more bytes than RTQ["MAX_PAYLOAD_BYTES"]
├── BrokerError             a Redis command failed
│   ├── BrokerUnavailable   connection error, timeout, or a server that cannot serve now
│   │   └── BrokerRefused   wrong address, credentials, database number or certificate: retrying does not help
│   │       └── FormatMismatch  Redis holds data in another format than this version of django_rtq reads
│   ├── BrokerFull          Redis is out of memory
│   └── NotReplicated       the jobs are stored, but not on RTQ["WAIT_REPLICAS"] replicas yet
├── QueueFull               delay(): as many jobs wait as max_waiting allows
├── JobError                about one job; has its job_id
│   ├── JobNotFound         unknown id, or its result has expired
│   ├── WrongState          the action is not possible in the current state of the job
│   ├── DuplicateJob        delay(): a job like it exists, and unique_on_conflict is "raise"
│   ├── JobFailed           JobHandle.get(): the job is dead, cancelled or expired
│   └── ResultTimeout       JobHandle.get(): the job is not over yet
├── WorkflowError           about one workflow; has its workflow_id
│   ├── InvalidWorkflow     a step that cannot be added, or too many
│   ├── WorkflowNotFound    unknown id, or it ended longer ago than WORKFLOW_TTL
│   ├── WorkflowFailed      Workflow.get(): it has failed, is cancelled, or is blocked by dead jobs
│   └── WorkflowTimeout     Workflow.get(): it is not over yet
├── WorkerNotFound          no worker with this name is known
├── WorkerLost              a run that ended with its process; never raised, recorded as the failure of a job
├── LeaseNotExpired         the jobs of a worker cannot be reclaimed: it may still be working
├── EventTimeout            raised inside a job: the event for which it waits has not come in time
├── TimeLimitExceeded       raised inside a job that exceeds its time_limit
├── Bury                    raised by a task to make its job a dead letter at once
│   └── InvalidStep         a step that cannot be: its name, its result, or where it is called. The job is dead
│       └── DuplicateStep   a name that this run has used already
├── BatchFailed             raised by a task with batch: some of its calls have failed
└── Retry                   raised by a task to run its job again later

JobCancelled and JobSuspended are BaseExceptions and no RTQErrors: raised inside a job that was asked to stop, or that
goes on later in another run.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_rtq.core.validation import TEN_YEARS, is_number

__all__ = [
    "BatchFailed",
    "BrokerError",
    "BrokerFull",
    "BrokerRefused",
    "BrokerUnavailable",
    "Bury",
    "ConfigurationError",
    "DuplicateJob",
    "DuplicateStep",
    "EventTimeout",
    "FormatMismatch",
    "InvalidStep",
    "InvalidTask",
    "InvalidWorkflow",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobNotFound",
    "JobSuspended",
    "LeaseNotExpired",
    "NotReplicated",
    "PayloadError",
    "PayloadTooLarge",
    "QueueFull",
    "RTQError",
    "RedisNotAllowed",
    "ResultTimeout",
    "Retry",
    "TaskNotFound",
    "TimeLimitExceeded",
    "TooManyPausedTasks",
    "Unserializable",
    "WorkerLost",
    "WorkerNotFound",
    "WorkflowError",
    "WorkflowFailed",
    "WorkflowNotFound",
    "WorkflowTimeout",
    "WrongState",
]


class RTQError(Exception):
    """Base class of all errors of this package. They can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self.args, vars(self))


def _made_again(kind: type[RTQError], args: tuple[Any, ...], attributes: Mapping[str, Any]) -> RTQError:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(attributes)
    return error


class ConfigurationError(RTQError, ImproperlyConfigured):
    """A setting is missing, unknown or invalid. The message says which one, and what to write instead."""


class RedisNotAllowed(RTQError, AssertionError):
    """A test would reach the project's Redis, or needs Redis while captured() or eager() takes its place."""


class InvalidTask(RTQError, ValueError):
    """A task is declared, called or scheduled with invalid options."""


class TaskNotFound(RTQError, LookupError):
    """No task with this name is registered in this process."""


class PayloadError(RTQError):
    """The arguments or the result of a job cannot be stored."""


class Unserializable(PayloadError, TypeError):
    """A value cannot be written as JSON. The message names the argument."""


class PayloadTooLarge(PayloadError, ValueError):
    """The JSON has more bytes than RTQ["MAX_PAYLOAD_BYTES"]."""


class BrokerError(RTQError):
    """A Redis command failed."""


class BrokerUnavailable(BrokerError):
    """Redis did not reply, or cannot serve now. The command may or may not have run."""

    #: Whether the connection was closed: commands that may run twice are sent once more over another one.
    is_connection_lost = False


class BrokerRefused(BrokerUnavailable):
    """Redis cannot be used as the settings say: wrong address, credentials, database number or certificate.

    Retrying does not help until the server or the settings change. A worker that gets it at start exits with code 1.
    """


class FormatMismatch(BrokerRefused):
    """Redis holds data in another format than this version of django_rtq reads and writes. Nothing was stored."""


class BrokerFull(BrokerError):
    """Redis is out of memory and rejected the command. Nothing was stored."""


class NotReplicated(BrokerError):
    """Jobs are stored and will run, but fewer replicas than RTQ["WAIT_REPLICAS"] had them in time.

    They are lost only if the master of Redis is lost now. To enqueue them again would make second jobs.
    """

    def __init__(self, problem: str, handles: Sequence[Any] = ()) -> None:
        #: The JobHandle of each job: the only one of delay(), all of delay_many().
        self.handles: list[Any] = list(handles)
        super().__init__(
            f"Stored, not replicated yet: {problem}. The jobs will run, unless Redis loses its master now. Do not "
            "enqueue them again."
        )


class QueueFull(RTQError):
    """As many jobs of the queue or of one client wait as max_waiting allows. The job was not stored."""

    def __init__(self, queue: str, client: str | None, waiting: int, limit: int, handles: Sequence[Any] = ()) -> None:
        self.queue = queue
        #: Whose limit it is; None: that of the whole queue.
        self.client = client
        #: How many jobs wait, and how many may.
        self.waiting = waiting
        self.limit = limit
        #: Of delay_many(): for each call the JobHandle of its job; None: the job was not stored.
        self.handles: list[Any] = list(handles)
        whose = f"client {client!r} of queue {queue}" if client is not None else f"queue {queue}"
        stored = f"{self.accepted} of {len(self.handles)} jobs were stored. " if len(self.handles) > 1 else ""
        owner = "--whole-queue" if client is None else f"--client {shlex.quote(client)}"
        super().__init__(
            f"{whose[0].upper()}{whose[1:]} is full (waiting jobs: {waiting}, max_waiting: {limit}). {stored}"
            f"Enqueue later, run more workers, or raise the limit: "
            f"manage.py rtq_clients limit {queue} {owner} --max-waiting N"
        )

    @property
    def accepted(self) -> int:
        """How many jobs were stored."""
        return sum(handle is not None for handle in self.handles)


class JobError(RTQError):
    """An error about one job, with its `job_id`."""

    def __init__(self, job_id: str, problem: str) -> None:
        super().__init__(f"Job {job_id} {problem}")
        self.job_id = job_id


class JobNotFound(JobError, LookupError):
    """No job with this id: the id is unknown, or the job is over and its result has expired."""

    def __init__(self, job_id: str) -> None:
        is_text = isinstance(job_id, str)
        why = "its id is unknown, or its result has expired." if is_text else f"an id is text, and this is {job_id!r}."
        super().__init__(job_id, f"was not found: {why}")


class WrongState(JobError):
    """The action is not possible in the current state of the job."""


class DuplicateJob(JobError):
    """Raised by delay() with unique_on_conflict="raise": a job like it exists. `job_id` is the id of that job."""

    def __init__(self, job_id: str, task: str) -> None:
        super().__init__(job_id, f"is not over yet, and its task {task} allows no second job like it.")


class JobFailed(JobError):
    """The job is over without a result. The message ends with the traceback of its last run, if there is one."""


class ResultTimeout(JobError, TimeoutError):
    """The job was not over in time. It continues."""


class LeaseNotExpired(RTQError):
    """The lease of the worker has not expired (for long enough), so its jobs cannot be reclaimed yet."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"The lease of worker {worker} has not expired, so it may still be working.")
        self.worker = worker


class TooManyPausedTasks(RTQError):
    """A queue has as many paused tasks as it may have. `paused` names the queues in which the task was paused now."""

    def __init__(self, queue: str, paused: Sequence[str] = ()) -> None:
        super().__init__(f"In queue {queue}, 100 tasks are paused already. Resume one, or pause the queue.")
        self.queue = queue
        self.paused = list(paused)


class WorkerLost(RTQError):
    """A run ended with its process or machine. Never raised: recorded as the failure of the job."""


class WorkflowError(RTQError):
    """About one workflow."""

    def __init__(self, workflow_id: str, message: str) -> None:
        super().__init__(" ".join(filter(None, ("Workflow", workflow_id, message))))
        self.workflow_id = workflow_id


class InvalidWorkflow(WorkflowError, ValueError):
    """A step that cannot be added to a workflow, or too many. Nothing was stored."""


class WorkflowNotFound(WorkflowError, LookupError):
    """No workflow has this id, or it ended longer ago than RTQ["WORKFLOW_TTL"]."""


class WorkflowFailed(WorkflowError):
    """The workflow has failed, is cancelled, or is blocked by dead jobs. The message has some of their errors."""


class WorkflowTimeout(WorkflowError, TimeoutError):
    """The workflow is not over yet."""


class WorkerNotFound(RTQError, LookupError):
    """No worker with this name is known: it is gone, or has started a moment ago."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"Worker {worker} was not found: it is gone, or has started a moment ago.")


class TimeLimitExceeded(RTQError):
    """Raised inside a job that exceeds its time_limit."""


class JobCancelled(BaseException):
    """Raised inside a job that was asked to stop, once. A task may raise it too: its job ends as cancelled.

    A BaseException, so that an `except Exception` around a step of the task does not swallow it.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the job was asked to stop")


class JobSuspended(BaseException):
    """Leaves a job that goes on later, in another run. Let it pass: `finally` blocks run each time.

    A BaseException, so that an `except Exception` around a step of the task does not swallow it.
    """

    def __init__(self, reason: str, *, seconds: float = 0.0, waits_for: str = "") -> None:
        super().__init__(reason)
        self.seconds = seconds  # how long it sleeps or waits at the most
        self.waits_for = waits_for  # for Redis; "": it does not go on, because another worker holds it


class EventTimeout(RTQError, TimeoutError):
    """wait() in a job: the event has not come in time."""


class Retry(RTQError):
    """Raise it in a task to run the job again ``after`` seconds or a timedelta.

    Without ``after`` the backoff of the task decides. Counts as a failed attempt.
    Raises ValueError if ``after`` is not a number of seconds or a timedelta of at most ten years.
    """

    max_attempts: int | None = None  # if not those of the task count, for tasks that were written for Celery

    def __init__(self, reason: str = "", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason or "the task asked to be retried")
        self.after_seconds = after.total_seconds() if isinstance(after, timedelta) else after
        wait = self.after_seconds
        if after is not None and not (is_number(wait) and -math.inf < wait <= TEN_YEARS):
            raise ValueError(f"Retry(after={after!r}): after has to be seconds or a timedelta of at most ten years.")


class Bury(RTQError):
    """Raise it in a task to make its job a dead letter at once, without more attempts."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the task asked to be buried")


class BatchFailed(RTQError):
    """Raise it in a task with batch if some of its calls have failed: ``BatchFailed({2: error, 7: Retry(after=60)})``.

    `errors`: by the place of the call in the list, from 0 on, what it would have raised alone. The others succeeded.
    """

    def __init__(self, errors: Mapping[int, BaseException]) -> None:
        given: Mapping[Any, Any] = errors
        for number, error in given.items():
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise TypeError(
                    f"BatchFailed: {number!r} is no place of a call in the list: these are numbers from 0 on."
                )
            if not isinstance(error, BaseException):
                raise TypeError(f"BatchFailed: {error!r} for call {number} is no exception.")
        super().__init__(f"calls that failed: {', '.join(map(str, sorted(errors))) or 'none'}")
        self.errors: dict[int, BaseException] = dict(errors)


class InvalidStep(Bury, ValueError):
    """A step of a job has a bad name, too large a result, or is called where it cannot be. The job is dead at once."""


class DuplicateStep(InvalidStep):
    """A run uses the name of a step twice."""
