"""Attributes of log records that say which jobs a line is about: the `extra` of our log lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_rtq.core.jobs.job import Job

FIELDS = ("job_id", "task", "queue", "client", "attempt")


def about(job: Job) -> dict[str, Any]:
    """The fields of a line about one job."""
    return {"job_id": job.id, "task": job.task, "queue": job.queue, "client": job.client, "attempt": job.attempt}


def about_jobs(job_ids: Sequence[str], **known: str) -> dict[str, Any]:
    """The fields of a line about several jobs: `job_ids`, and `job_id` if it is one. `known` holds for all of them."""
    one = {"job_id": job_ids[0]} if len(job_ids) == 1 else {}
    return {"job_ids": list(job_ids), **one, **known}
