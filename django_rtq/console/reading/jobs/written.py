"""What a failed job of a task with exactly_once has written."""

from __future__ import annotations

from django.db import DatabaseError
from django.utils.translation import gettext as _

from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState
from django_rtq.core.tasks.registry import known_task
from django_rtq.databases.exactly_once import has_committed


def written_text(job: JobDetails) -> str:
    """Whether a run has committed, of a job that is dead or waits for a retry. "" for others."""
    task = known_task(job.task)
    if job.state not in (JobState.DEAD, JobState.RETRYING) or task is None or not task.exactly_once:
        return ""
    try:
        is_written = has_committed(task.exactly_once, job.id)
    except DatabaseError:
        return _("The database did not say whether a run has committed.")
    if not is_written:
        return _("Nothing was written: no run has committed.")
    if job.state is JobState.RETRYING:
        return _("A run has committed. The next one succeeds, and its function is not called again.")
    return _("A run has committed. After a requeue the job succeeds, and its function is not called again.")
