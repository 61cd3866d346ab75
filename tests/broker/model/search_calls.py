"""Searches with a filter that no job matches."""

from __future__ import annotations

from typing import Any

from django_rtq.inspector.inspector import Inspector
from django_rtq.inspector.jobs.job_filter import JobFilter
from tests.support.jobs import QUEUE

NO_JOB = JobFilter(task="none")


def count(broker: Any, jobs: Any) -> Any:
    return Inspector(broker).dead_letters.select(QUEUE, NO_JOB)


def next_ids(broker: Any, jobs: Any) -> Any:
    return Inspector(broker).dead_letters.next_ids(QUEUE, NO_JOB, 10**15, "", 9)


def page(broker: Any, jobs: Any) -> Any:
    return Inspector(broker).job_list.page(QUEUE, "queued", filter=NO_JOB)
