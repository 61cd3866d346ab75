"""Fixtures: real workers, and what Django's signals said."""

import importlib
import json
import sys
from contextlib import contextmanager

import pytest
from django.test import override_settings

from django_rtq.backend.compat import task_enqueued, task_finished, task_started
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.tasks import registry
from testproject.redis_server import PrivateRedis
from tests.core.worker.conftest import databases_of_the_session, journal, rtq_worker  # noqa: F401
from tests.support.jobs import receiving
from tests.support.redis_server import Redis
from tests.support.waiting import wait_until

BACKEND = "django_rtq.backend.RTQBackend"


def tasks_setting(**options):
    """TASKS with "reports", whose jobs are elsewhere."""
    return {
        "default": {"BACKEND": BACKEND, "QUEUES": []},
        "reports": {"BACKEND": BACKEND, "QUEUES": ["default", "reports"], "OPTIONS": options},
    }


@contextmanager
def reports_in(**options):
    """A block in which TASKS has "reports"."""
    with override_settings(TASKS=tasks_setting(**options)):
        yield
        get_broker("reports").close()


def refreshed(result):
    result.refresh()
    return result


def finished(result):
    """The result when its job has ended."""
    wait_until(lambda: refreshed(result).is_finished)
    return result


@pytest.fixture
def told():
    """Name of the signal, sender and result of each signal of django.tasks in this process."""
    found, names = [], {task_enqueued: "enqueued", task_started: "started", task_finished: "finished"}

    def note(signal, sender, task_result, **kwargs):
        found.append((names[signal], sender, task_result))

    with receiving(note, *names):
        yield found


@pytest.fixture(scope="module")
def other_server():
    """A second Redis server."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def other(other_server, broker):
    """A client of it. "reports" has its jobs there, and all other backends in that of RTQ."""
    client = Redis.from_url(other_server.url, protocol=2)
    client.flushdb()
    with reports_in(REDIS=other_server.url):
        yield client
    client.close()


@pytest.fixture
def report_tasks(other, monkeypatch):
    """A module with tasks of "reports". They are gone after the test."""
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    monkeypatch.delitem(sys.modules, "tests.app.report_tasks", raising=False)
    return importlib.import_module("tests.app.report_tasks")


@pytest.fixture
def report_worker(request, other_server):
    """Start a worker: report_worker("--backend", "reports")."""
    start_worker = request.getfixturevalue("rtq_worker")

    def start(*arguments, **options):
        environment = {"RTQ_TEST_TASKS": json.dumps(tasks_setting(REDIS=other_server.url))}
        worker = start_worker(*arguments, is_ready=False, environment=environment, **options)
        wait_until(lambda: "starting" in worker.log or not worker.is_running)
        return worker

    return start
