"""Incidents of the code that workers run: tasks that they do not know, workers of several projects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django_rtq.conf.config import get_config
from django_rtq.incidents.incident import Action, Incident, Severity
from django_rtq.inspector.overview import Overview

DEPLOY_SECONDS = 300.0  # in a rolling deploy, older workers meet jobs of new tasks for a while
MAX_NAMED = 3


def unknown_tasks(overview: Overview) -> Iterator[Incident]:
    """Tasks of jobs that came to workers which do not know them, those with most jobs first."""
    found = [(row.details.name, task) for row in overview.queues for task in row.unknown_tasks]
    for queue, task in sorted(found, key=lambda pair: -pair[1].jobs):
        is_deploy = task.since is not None and (overview.now - task.since).total_seconds() < DEPLOY_SECONDS
        yield Incident(
            kind="task_unknown",
            severity=Severity.WARNING if is_deploy else Severity.CRITICAL,
            since=task.since,
            queue=queue,
            task=task.task,
            values={
                "task": task.task[:200],
                "name": queue,
                "count": task.jobs,
                "worker": _named([name.rpartition(":")[0][:80] for name in task.workers]),
                "duration": get_config().unknown_task_timeout,
            },
            also=("declare_task",),
            actions=(Action.SHOW_RETRYING, Action.SHOW_WORKERS),
        )


def several_projects(overview: Overview) -> Iterator[Incident]:
    """Workers of several projects: they take jobs from each other."""
    hosts: dict[str, set[str]] = {}
    for worker in overview.workers:
        if worker.project and not worker.is_lost:
            hosts.setdefault(worker.project, set()).add(worker.host)
    if len(hosts) > 1:
        projects = [f"{project} ({_named(sorted(names))})"[:200] for project, names in sorted(hosts.items())]
        yield Incident(
            kind="several_projects",
            severity=Severity.CRITICAL,
            values={"names": _named(projects), "prefix": get_config().prefix},
            actions=(Action.SHOW_WORKERS,),
        )


def _named(names: Sequence[str]) -> str:
    return ", ".join([*names[:MAX_NAMED], *["…"][: len(names) > MAX_NAMED]])
