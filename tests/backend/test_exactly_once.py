"""Tasks of django.tasks with exactly_once: what its signals say, and when."""

import dataclasses

import pytest
from django.db import connection

from django_rtq.backend import RTQTask
from django_rtq.backend.compat import TaskResultStatus, task_finished, task_started
from django_rtq.core.tasks import registry
from django_rtq.models import CommittedJob
from django_rtq.testing import eager
from tests.app import django_tasks as tasks
from tests.support.jobs import receiving

RUNNING, FAILED, SUCCESSFUL = TaskResultStatus.RUNNING, TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL


@pytest.fixture
def heard():
    """For each signal, the status of the result, and whether a transaction was open."""
    found = []

    def note(sender, task_result, **kwargs):
        found.append((task_result.status, connection.in_atomic_block))

    with receiving(note, task_started, task_finished):
        yield found


@pytest.fixture
def declare(database, monkeypatch):
    """Make a function a task with exactly_once."""
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    given = {each.name: getattr(tasks.add, each.name) for each in dataclasses.fields(tasks.add)}
    return lambda func: RTQTask(**{**given, "func": func, "exactly_once": True})


def run(task, *args):
    with eager(propagate=False) as runs:
        task.delay(*args)
    return runs[0]


def pay(value):
    """Returns plain JSON."""
    assert connection.in_atomic_block
    return (value, 1)


def return_a_lambda():
    return pay


def owe():
    """Its commit is refused."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO debts (customer) VALUES (7)")


def test_signals_are_sent_before_the_transaction_and_after_the_commit(declare, heard):
    job = run(declare(pay), "x")

    assert job.result == ["x", 1]
    assert heard == [(RUNNING, False), (SUCCESSFUL, False)]
    assert CommittedJob.objects.get().result == '["x",1]'


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
def test_one_end_is_announced_if_the_commit_is_refused(database, declare, heard):
    database.query("CREATE TABLE customers (id integer PRIMARY KEY)")
    foreign_key = "REFERENCES customers (id) DEFERRABLE INITIALLY DEFERRED"
    database.query(f"CREATE TABLE debts (customer integer {foreign_key})")
    job = run(declare(owe))

    assert type(job.error).__name__ == "IntegrityError"
    assert heard == [(RUNNING, False), (FAILED, False)]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_value_that_is_not_json_is_not_committed(declare, heard):
    job = run(declare(return_a_lambda))

    assert isinstance(job.error, TypeError)
    assert heard == [(RUNNING, False), (FAILED, False)]
    assert not CommittedJob.objects.exists()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_call_without_a_job_runs_the_function_alone(declare, heard):
    assert declare(return_a_lambda).call() is pay
    assert heard == []
    assert not CommittedJob.objects.exists()
