"""Redis task queues for Django: fair turns per client, nothing lost."""

from typing import TYPE_CHECKING, Any

from django_rtq.exceptions import (
    BrokerError,
    BrokerFull,
    BrokerRefused,
    BrokerUnavailable,
    Bury,
    ConfigurationError,
    DuplicateJob,
    FormatMismatch,
    InvalidTask,
    JobCancelled,
    JobError,
    JobFailed,
    JobNotFound,
    LeaseNotExpired,
    PayloadError,
    PayloadTooLarge,
    QueueFull,
    RedisNotAllowed,
    ResultTimeout,
    Retry,
    RTQError,
    TaskNotFound,
    TimeLimitExceeded,
    TooManyPausedTasks,
    Unserializable,
    WorkerLost,
    WorkerNotFound,
    WrongState,
)
from django_rtq.handle import JobHandle
from django_rtq.jobs.context import JobContext, current_job, report_progress
from django_rtq.jobs.job import CancelAnswer, Job, JobState
from django_rtq.schedules import cron, every
from django_rtq.tasks.decorator import task
from django_rtq.tasks.options.backoff import constant, exponential, steps
from django_rtq.tasks.task import Task
from django_rtq.tasks.task_call import TaskCall

if TYPE_CHECKING:
    from django_rtq.inspector.details import JobDetails
    from django_rtq.inspector.inspector import Inspector, get_inspector

__version__ = "0.1.0"
__all__ = [
    "BrokerError",
    "BrokerFull",
    "BrokerRefused",
    "BrokerUnavailable",
    "Bury",
    "CancelAnswer",
    "ConfigurationError",
    "DuplicateJob",
    "FormatMismatch",
    "Inspector",
    "InvalidTask",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobDetails",
    "JobError",
    "JobFailed",
    "JobHandle",
    "JobNotFound",
    "JobState",
    "LeaseNotExpired",
    "PayloadError",
    "PayloadTooLarge",
    "QueueFull",
    "RTQError",
    "RedisNotAllowed",
    "ResultTimeout",
    "Retry",
    "Task",
    "TaskCall",
    "TaskNotFound",
    "TimeLimitExceeded",
    "TooManyPausedTasks",
    "Unserializable",
    "WorkerLost",
    "WorkerNotFound",
    "WrongState",
    "constant",
    "cron",
    "current_job",
    "every",
    "exponential",
    "get_inspector",
    "report_progress",
    "steps",
    "task",
]


def __getattr__(name: str) -> Any:
    # The inspector has many modules, which a process that only enqueues does not need.
    if name in ("Inspector", "get_inspector"):
        from django_rtq.inspector import inspector

        return getattr(inspector, name)
    if name == "JobDetails":
        from django_rtq.inspector.details import JobDetails

        return JobDetails
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
