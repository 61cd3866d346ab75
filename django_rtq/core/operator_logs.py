"""Log lines about what people do with jobs, in every process. The others are in logs.py."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django_rtq.core import signals
from django_rtq.core.jobs.log_fields import about_jobs

logger = logging.getLogger("django_rtq")


def connect_operator_events() -> None:
    """Log cancelled, requeued and discarded jobs, in every process. May be called twice."""
    signals.job_cancelled.connect(log_cancelled, dispatch_uid="rtq-log")
    signals.job_requeued.connect(log_requeued, dispatch_uid="rtq-log")
    signals.job_discarded.connect(log_discarded, dispatch_uid="rtq-log")


def log_cancelled(*, job_id: str, queue: str, **kwargs: object) -> None:
    logger.info("cancelled job %s of queue %s", job_id, queue, extra=about_jobs([job_id], queue=queue))


def log_requeued(*, job_ids: Sequence[str], queue: str, **kwargs: object) -> None:
    extra = about_jobs(job_ids, queue=queue)
    logger.info("requeued %d dead letters in queue %s: %s", len(job_ids), queue, first_ids(job_ids), extra=extra)


def log_discarded(*, job_ids: Sequence[str], queue: str, **kwargs: object) -> None:
    extra = about_jobs(job_ids, queue=queue)
    logger.info("discarded %d dead letters of queue %s: %s", len(job_ids), queue, first_ids(job_ids), extra=extra)


def first_ids(job_ids: Sequence[str]) -> str:
    """As many as fit on a line."""
    return ", ".join(job_ids[:10]) + (", …" if len(job_ids) > 10 else "")
