"""The list of tasks: what its URL says, and the order of its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_lazy

from django_rtq.admin.display.paged_list import ListParams
from django_rtq.inspector.metrics.reader import TaskMetrics


@dataclass(frozen=True, kw_only=True)
class TaskListParams(ListParams):
    """What the URL of the list says."""

    TITLES = {
        "name": gettext_lazy("Task"),
        "done": gettext_lazy("Done"),
        "failed": gettext_lazy("Failed"),
        "failure_rate": gettext_lazy("Failure rate"),
        "run_p50": gettext_lazy("Run p50"),
        "run_p95": gettext_lazy("Run p95"),
        "wait_p50": gettext_lazy("Wait p50"),
        "wait_p95": gettext_lazy("Wait p95"),
    }
    FIRST = "name"


def listed_tasks(
    params: TaskListParams, names: Collection[str], internal: Collection[str], metrics: Mapping[str, TaskMetrics]
) -> list[str]:
    """The tasks whose names contain what is searched, in the order of the list; by name, ours behind the project's."""
    search = params.search.casefold()
    found = sorted((name for name in names if search in name.casefold()), key=lambda name: (name in internal, name))
    if params.sort == params.NAME:
        return found[::-1] if params.is_reversed else found
    figures = {name: getattr(of_task, params.sort) for name, of_task in metrics.items()}
    counted = [name for name in found if figures.get(name) is not None]
    counted.sort(key=figures.__getitem__, reverse=not params.is_reversed)
    return [*counted, *(name for name in found if figures.get(name) is None)]
