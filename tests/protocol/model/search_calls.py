"""Searches with a filter that no job matches."""

from __future__ import annotations

from typing import Any

from django_rtq.console.inspector.inspector import Inspector
from django_rtq.console.inspector.jobs.job_filter import JobFilter
from tests.support import sweeps
from tests.support.jobs import QUEUE


def count(broker: Any, jobs: Any) -> Any:
    return sweeps.count(Inspector(broker), "requeue", task="none")


def next_ids(broker: Any, jobs: Any) -> Any:
    return sweeps.run(Inspector(broker), "requeue", task="none")


def page(broker: Any, jobs: Any) -> Any:
    return Inspector(broker).job_list.page(QUEUE, "queued", filter=JobFilter(task="none"))
