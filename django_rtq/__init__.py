"""Redis task queues for Django: fair turns per client, nothing lost."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from django_rtq import exceptions
from django_rtq.core.extension import parts
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.job import CancelAnswer, Job, JobState
from django_rtq.core.tasks.decorator import task
from django_rtq.core.tasks.options.backoff import constant, exponential, steps
from django_rtq.core.tasks.task import Task, TaskCall
from django_rtq.exceptions import *  # noqa: F403

if TYPE_CHECKING:
    from django_rtq.console.nouns import rtq
    from django_rtq.core.jobs.context import Call, JobContext, current_job, report_progress
    from django_rtq.core.jobs.details import JobDetails
    from django_rtq.core.schedules import cron, every
    from django_rtq.workflows.builder import workflow
    from django_rtq.workflows.handle import Workflow, WorkflowState, get_workflow

__version__ = "0.1.0"
__all__ = [
    "Call",
    "CancelAnswer",
    "Job",
    "JobContext",
    "JobDetails",
    "JobHandle",
    "JobState",
    "Task",
    "TaskCall",
    "Workflow",
    "WorkflowState",
    "constant",
    "cron",
    "current_job",
    "every",
    "exponential",
    "get_workflow",
    "report_progress",
    "rtq",
    "steps",
    "task",
    "workflow",
]
__all__ += exceptions.__all__


#: Names that a process which only enqueues does not need, and their modules.
_WHEN_NEEDED = {
    **dict.fromkeys(("Call", "JobContext", "current_job", "report_progress"), "core.jobs.context"),
    **dict.fromkeys(("cron", "every"), "core.schedules"),
    **dict.fromkeys(("Workflow", "WorkflowState", "get_workflow"), "workflows.handle"),
    "JobDetails": "core.jobs.details",
    "rtq": "console.nouns",
    "workflow": "workflows.builder",
}


def __getattr__(name: str) -> Any:
    if module := _WHEN_NEEDED.get(name):
        return getattr(import_module(f"{__name__}.{module}"), name)
    if cure := next((other_queues.IMPORTED.get(name) for other_queues in parts("other_queues")), None):
        # An AttributeError would lose its text in `from django_rtq import …`.
        raise ImportError(f"django_rtq has no {name}. {cure}", name=__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
