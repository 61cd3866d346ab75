"""Our own tasks, whose names begin with that of this module: workers import it when a job of them comes."""

from django_rtq.console.internal_tasks import (
    delete_committed_jobs,
    enqueue_rest,
    run_bulk_action,
)

__all__ = [
    "delete_committed_jobs",
    "enqueue_rest",
    "run_bulk_action",
]
