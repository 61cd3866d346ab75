"""Jobs of django.tasks that are dropped from a full queue, or cancelled."""

import pytest
from django.conf import settings
from django.test import override_settings

from django_rtq import workflow
from django_rtq.backend.compat import TaskResultStatus
from django_rtq.broker.brokers import get_broker
from tests.app import django_tasks as tasks
from tests.app.workflow_steps import double


@pytest.fixture
def full_queue(broker, inspector):
    """A queue with room for one job, which drops the oldest."""
    inspector.limits.set_queue("other", max_waiting=1)
    with override_settings(RTQ={**settings.RTQ, "QUEUES": {"other": {"on_full": "drop_oldest"}}}):
        yield
        get_broker().close()


def test_a_dropped_job_has_failed_and_its_end_is_announced(full_queue, told):
    first, second = tasks.note.enqueue("x"), tasks.note.enqueue("y")
    first.refresh()
    second.refresh()

    assert (first.status, second.status) == (TaskResultStatus.FAILED, TaskResultStatus.READY)
    assert first.errors[0].exception_class.__name__ == "JobCancelled"
    assert [(name, result.id) for name, _, result in told if name == "finished"] == [("finished", first.id)]


def test_jobs_of_workflows_are_not_looked_up_one_by_one_when_they_are_cancelled(broker, monkeypatch):
    found = []
    monkeypatch.setattr("django_rtq.backend.running._find", lambda *job: found.append(job) or (None, ""))
    with workflow("flow") as flow:
        flow.map(double, range(3))

    flow.handle.cancel()
    assert found == []
    double.delay(1).cancel()
    assert len(found) == 1
