"""Our own tasks, whose names begin with that of this module: workers import it when a job of them comes."""

from django_rtq.console.internal_tasks import (
    cancel_client_jobs,
    cancel_task_jobs,
    delete_committed_jobs,
    enqueue_rest,
    run_bulk_action,
)

__all__ = [
    "cancel_client_jobs",
    "cancel_task_jobs",
    "delete_committed_jobs",
    "enqueue_rest",
    "run_bulk_action",
]
