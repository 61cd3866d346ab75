"""A package that enqueues its own tasks through django.tasks runs in our workers."""

from django.test import override_settings

from django_rtq.backend.compat import BaseTaskBackend, TaskResultStatus
from tests.backend.newsletter import delivery
from tests.backend.results import finished

IMMEDIATE = f"{BaseTaskBackend.__module__.partition('.base')[0]}.immediate.ImmediateBackend"


def test_its_jobs_enqueue_run_and_read_each_other(rtq_worker):
    rtq_worker(environment={"RTQ_TEST_APPS": "tests.backend.newsletter"})
    summary = finished(delivery.send(["ada@example.org", "nobody", "grace@example.org"], "News"))

    assert summary.errors == []
    assert summary.return_value == {
        "sent": ["ada@example.org", "grace@example.org"],
        "failed": ["builtins.ValueError"],
        "attempt": 1,
    }


def test_its_tasks_can_be_sent_to_a_backend_that_they_were_not_declared_for(rtq_worker):
    ours = {"BACKEND": "django_rtq.backend.RTQBackend", "QUEUES": []}
    rtq_worker(environment={"RTQ_TEST_APPS": "tests.backend.newsletter"})
    with override_settings(TASKS={"default": {"BACKEND": IMMEDIATE}, "queue": ours}):
        result = finished(delivery.deliver.using(backend="queue").enqueue("ada@example.org", subject="News"))

    assert (result.status, result.backend) == (TaskResultStatus.SUCCESSFUL, "queue")
    assert result.return_value == {"to": "ada@example.org", "subject": "News"}
