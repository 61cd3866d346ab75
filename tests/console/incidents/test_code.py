"""Incidents of the code that workers run."""

from dataclasses import replace

import pytest

from django_rtq.console.incidents import Action, Severity
from django_rtq.console.reading.details import UnknownTask
from tests.console.incidents.overviews import ago, incidents, kinds, row, worker


def unknown(task="shop.tasks.charge", *, seconds=10, jobs=5, workers=("web1:7:x", "web2:8:y")):
    return UnknownTask(task=task, since=ago(seconds), jobs=jobs, workers=workers)


def with_unknown(*tasks, **details):
    return replace(row(**details), unknown_tasks=tasks)


@pytest.mark.parametrize(("seconds", "severity"), [(299, Severity.WARNING), (300, Severity.CRITICAL)])
def test_a_task_that_workers_do_not_know_is_critical_after_a_deploy(seconds, severity):
    (found,) = incidents(with_unknown(unknown(seconds=seconds)))

    assert (found.kind, found.severity, found.since) == ("task_unknown", severity, ago(seconds))
    assert (found.queue, found.task) == ("mail", "shop.tasks.charge")
    assert found.actions == (Action.SHOW_RETRYING, Action.SHOW_WORKERS)
    assert found.text == (
        "Queue mail: 5 jobs wait, because workers that took them do not know their task shop.tasks.charge: web1:7, "
        "web2:8. Start workers with the code that declares the task, in an app of INSTALLED_APPS or in a module of "
        'RTQ["TASK_MODULES"]. Jobs that have waited for 24 h are dead.'
    )


def test_the_task_with_most_jobs_comes_first():
    found = incidents(with_unknown(unknown("a"), unknown("b", jobs=9)))
    assert [incident.task for incident in found] == ["b", "a"]


def test_workers_of_several_projects_are_named_with_their_hosts():
    workers = [worker(project="shop"), worker(project="crm", host="web2"), worker(project="crm", host="web1")]

    (found,) = incidents(row(), workers=workers)

    assert (found.kind, found.severity) == ("several_projects", Severity.CRITICAL)
    assert found.text == (
        "Workers of several projects take jobs from each other, because all use this Redis with the prefix rtq: "
        'crm (web1, web2), shop (web1). Set another RTQ["PREFIX"] or database in each project.'
    )


@pytest.mark.parametrize(
    "other", [{"project": "shop"}, {"project": ""}, {"project": "crm", "lease_left_seconds": -1.0}]
)
def test_workers_of_one_project_are_not(other):
    assert "several_projects" not in kinds(row(), workers=[worker(project="shop"), worker(**other)])
