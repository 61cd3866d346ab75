"""Jobs of django.tasks in a worker."""

import pytest
from django.test import override_settings

from django_rtq import workflow
from django_rtq.backend.compat import BaseTaskBackend, TaskResultStatus
from tests.app import django_tasks as tasks
from tests.app.workflow_steps import double
from tests.backend.conftest import finished, refreshed
from tests.backend.newsletter import delivery

READY, RUNNING, FAILED, SUCCESSFUL = (TaskResultStatus[name] for name in ("READY", "RUNNING", "FAILED", "SUCCESSFUL"))


def test_functions_and_coroutines_run_and_their_results_are_complete(rtq_worker):
    rtq_worker("--queues", "default,other")
    for task, args, value in (
        (tasks.add, (1, 2), 3),
        (tasks.add_later, (3, 4), 7),
        (tasks.note, ("x",), {"name": "x", "at": [1, 2]}),
    ):
        result = finished(task.enqueue(*args))

        assert (result.status, result.return_value, result.errors) == (SUCCESSFUL, value, [])
        assert result.enqueued_at <= result.started_at <= result.finished_at
        assert result.last_attempted_at == result.started_at
        assert (result.attempts, len(result.worker_ids)) == (1, 1)
        assert ":" in result.worker_ids[0]
        found = task.get_result(result.id)
        assert found == result
        assert found.args == list(args)


def test_the_context_knows_the_result_and_the_attempt(rtq_worker):
    rtq_worker()
    result = finished(tasks.attempt_of.enqueue(name="x"))

    assert result.return_value == [1, result.id, "RUNNING", [], result.id]


def test_a_failure_is_final_unless_the_options_say_otherwise(rtq_worker):
    rtq_worker()
    failed = finished(tasks.fail.enqueue("no"))
    retried = finished(tasks.fail_until.using(max_attempts=3).enqueue(3))

    assert failed.status is FAILED
    assert failed.errors[0].exception_class is ValueError
    assert failed.errors[0].traceback.endswith("ValueError: no\n")
    assert "tests/app/django_tasks.py" in failed.errors[0].traceback.splitlines()[1]
    assert failed.started_at <= failed.finished_at
    with pytest.raises(ValueError, match="Task failed"):
        _ = failed.return_value
    assert (retried.status, retried.return_value, retried.attempts) == (SUCCESSFUL, 3, 3)
    assert [error.exception_class for error in retried.errors] == [KeyError, KeyError]
    assert retried.started_at < retried.last_attempted_at < retried.finished_at
    assert len(set(retried.worker_ids)) == 1


def test_a_job_that_is_running_or_cancelled(rtq_worker, journal, access):
    rtq_worker()
    running, waiting = tasks.gate.enqueue("first", "gate"), tasks.gate.using(run_after=3600).enqueue("x", "y")
    journal.wait("start", "first")

    assert refreshed(running).status is RUNNING
    assert running.started_at == running.last_attempted_at >= running.enqueued_at
    assert (running.attempts, running.finished_at) == (1, None)
    access.cancel(waiting.id)
    found = refreshed(waiting)
    assert (found.status, found.attempts) == (FAILED, 0)
    assert found.errors[0].exception_class.__name__ == "JobCancelled"
    journal.open("gate")
    assert finished(running).status is SUCCESSFUL


def test_signals_are_sent_once_for_each_step_where_it_happens(rtq_worker, journal, told, access):
    good, bad, late = (
        tasks.add.enqueue(1),
        tasks.fail.using(max_attempts=2).enqueue("no"),
        tasks.add.using(run_after=3600),
    )
    cancelled = late.enqueue(1)
    rtq_worker()
    journal.wait("task_finished", f"{bad.id}-FAILED-ValueError")
    access.cancel(cancelled.id)

    assert journal.names("task_started") == [good.id, bad.id, bad.id]
    assert journal.names("task_finished") == [
        f"{good.id}-SUCCESSFUL-None",
        f"{bad.id}-FAILED-ValueError",
        f"{cancelled.id}-FAILED-None",
    ]
    assert [(name, result.id, result.status) for name, _, result in told] == [
        ("enqueued", good.id, READY),
        ("enqueued", bad.id, READY),
        ("enqueued", cancelled.id, READY),
        ("finished", cancelled.id, FAILED),
    ]


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


def test_jobs_of_workflows_are_not_looked_up_one_by_one_when_they_are_cancelled(broker, monkeypatch):
    found = []
    monkeypatch.setattr("django_rtq.backend.running._find", lambda *job: found.append(job) or (None, ""))
    with workflow("flow") as flow:
        flow.map(double, range(3))

    flow.handle.cancel()
    assert found == []
    double.delay(1).cancel()
    assert len(found) == 1
