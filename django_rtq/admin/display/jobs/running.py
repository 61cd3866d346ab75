"""Running jobs, grouped by worker, with a warning for those that look hung."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from django_rtq.admin.display.sanitize import short_id
from django_rtq.conf.config import get_config
from django_rtq.formatting import format_duration
from django_rtq.incidents.workers import is_hung, time_limit_of
from django_rtq.inspector.details import RunningJob, WorkerDetails


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJobs:
    """The running jobs of one worker."""

    worker: WorkerDetails
    is_lost: bool
    text: str
    rows: list[dict[str, Any]]


def busiest_first(workers: Sequence[WorkerDetails]) -> list[WorkerDetails]:
    """Workers with running jobs: lost workers first, then by the longest-running job."""
    busy = [worker for worker in workers if worker.running]
    return sorted(busy, key=lambda worker: (not worker.is_lost, -max(job.seconds for job in worker.running)))


def running_by_worker(workers: Sequence[WorkerDetails]) -> list[WorkerJobs]:
    """Workers with running jobs, in the order of busiest_first()."""
    return [
        WorkerJobs(
            worker=worker,
            is_lost=worker.is_lost,
            text=_lease_text(worker),
            rows=[_row(job) for job in sorted(worker.running, key=lambda job: -job.seconds)],
        )
        for worker in busiest_first(workers)
    ]


def _lease_text(worker: WorkerDetails) -> str:
    left = worker.lease_left_seconds
    if left < 0:
        return _("lease expired %(seconds)d s ago") % {"seconds": -left}
    return _("lease expires in %(seconds)d s") % {"seconds": left}


def _row(job: RunningJob) -> dict[str, Any]:
    return {"job": job, "short_id": short_id(job.id), "warning": running_job_warning(job)}


def running_job_warning(job: RunningJob) -> str:
    """Why a running job looks hung. "" if it does not."""
    if not is_hung(job):
        return ""
    limit = time_limit_of(job)
    if limit is not None and job.seconds > limit:
        return _("over its time limit of %(limit)g s") % {"limit": limit}
    if job.usual_seconds is not None:
        return _("much longer than usual (%(usual)s)") % {"usual": format_duration(job.usual_seconds)}
    longest = get_config().incident_options.running_seconds
    return _("running for over %(duration)s without a time limit") % {"duration": format_duration(longest)}
