"""What runs, worker by worker, and what of it looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from django_rtq.admin.display.health import is_lost
from django_rtq.admin.display.sanitize import short_id
from django_rtq.admin.remarks import remark_on
from django_rtq.inspector.details import RunningJob, WorkerDetails


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingList:
    """What one worker holds."""

    worker: WorkerDetails
    is_lost: bool
    text: str
    rows: list[dict[str, Any]]


def processing_lists(workers: Sequence[WorkerDetails]) -> list[ProcessingList]:
    """The workers that hold anything; those that are gone first, then who runs the longest."""
    busy = [
        ProcessingList(
            worker=worker,
            is_lost=is_lost(worker),
            text=_lease_text(worker),
            rows=[_row(job) for job in sorted(worker.running, key=lambda job: -job.seconds)],
        )
        for worker in workers
        if worker.running
    ]
    return sorted(busy, key=lambda found: (not found.is_lost, -max(row["job"].seconds for row in found.rows)))


def _lease_text(worker: WorkerDetails) -> str:
    left = worker.lease_left_seconds
    if left < 0:
        return _("its lease ran out %(seconds)d s ago") % {"seconds": -left}
    return _("%(seconds)d s of its lease left") % {"seconds": left}


def _row(job: RunningJob) -> dict[str, Any]:
    return {"job": job, "short_id": short_id(job.id), "remark": remark_on(job)}
