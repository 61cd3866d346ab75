"""Redis task queues for Django: fair turns per client, nothing lost."""

from django_rtq.exceptions import Bury, JobCancelled, Retry, TimeLimitExceeded
from django_rtq.handle import JobHandle
from django_rtq.jobs.context import JobContext, current_job, report_progress
from django_rtq.jobs.job import Job, JobState
from django_rtq.periodic import cron, every
from django_rtq.tasks.backoff import constant, exponential, steps
from django_rtq.tasks.decorator import task
from django_rtq.tasks.task import Task
from django_rtq.tasks.task_call import TaskCall

__version__ = "0.1.0"
__all__ = [
    "Bury",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobHandle",
    "JobState",
    "Retry",
    "Task",
    "TaskCall",
    "TimeLimitExceeded",
    "constant",
    "cron",
    "current_job",
    "every",
    "exponential",
    "report_progress",
    "steps",
    "task",
]
