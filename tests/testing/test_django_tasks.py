"""Tasks of django.tasks, with our backend, in tests of projects."""

import asyncio

import pytest

from django_rtq.testing import captured, drain, eager, private_redis

pytest.importorskip("django.tasks")

from django.tasks import TaskResultStatus, task
from django.tasks import task_backends as backends
from django.test import override_settings

TASKS = {"default": {"BACKEND": "django_rtq.backend.RTQBackend", "QUEUES": [], "OPTIONS": {"max_attempts": 3}}}


@pytest.fixture(autouse=True)
def backend():
    with override_settings(TASKS=TASKS):
        yield backends["default"]


@pytest.fixture
def add():
    return task(add_numbers)


def add_numbers(first, second):
    if first < 0:
        raise ValueError("negative")
    return first + second


def test_enqueued_tasks_are_captured(add):
    with captured() as jobs:
        result = add.enqueue(1, second=2)
        assert result.status == TaskResultStatus.READY
        result.refresh()
    jobs.assert_enqueued(f"{__name__}.add_numbers", args=(1,), kwargs={"second": 2}, times=1)


def test_enqueued_tasks_run_at_once(add, backend):
    with eager(retries=True, propagate=False) as runs:
        result = add.enqueue(1, 2)
        result.refresh()
        assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 3)
        asyncio.run(add.aenqueue(3, 4))
        failed = backend.get_result(add.enqueue(-1, 2).id)
        assert failed.status == TaskResultStatus.FAILED
        assert len(failed.errors) == 3
    assert len(runs) == 5


def test_enqueued_tasks_are_drained(add):
    pytest.importorskip("fakeredis")
    with private_redis():
        result = add.enqueue(1, 2)
        drain()
        result.refresh()
    assert result.return_value == 3
