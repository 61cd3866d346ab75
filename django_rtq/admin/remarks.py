"""What looks wrong with a job that runs."""

from __future__ import annotations

from django.utils.translation import gettext as _

from django_rtq.admin.display.formatting import duration_text
from django_rtq.conf import get_config
from django_rtq.inspector.details import RunningJob
from django_rtq.tasks.registry import all_tasks

HUNG_SECONDS = 3600.0  # a run without a time limit that takes longer than this is worth a look


def remark_on(job: RunningJob) -> str:
    """In words; "" when nothing does."""
    task = all_tasks().get(job.task)
    limit = job.time_limit or (task.time_limit if task else None) or get_config().time_limit
    if limit is not None and job.seconds > limit:
        return _("over its time limit of %(limit)g s") % {"limit": limit}
    if job.looks_hung(limit):
        return _("far longer than usual: %(usual)s") % {"usual": duration_text(job.usual_seconds)}
    if limit is None and job.seconds > HUNG_SECONDS:
        return _("runs for long, and has no time limit")
    return ""
