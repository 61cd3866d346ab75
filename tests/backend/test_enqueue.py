"""Enqueue through django.tasks."""

import dataclasses
import json
import logging
import pickle
from datetime import datetime, timedelta, timezone

import django
import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings

from django_rtq import JobState, constant
from django_rtq.backend import RTQBackend, RTQTask
from django_rtq.backend.compat import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    has_receivers,
    signals,
    task_backends,
    task_enqueued,
)
from django_rtq.backend.results import result_of
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.failure import read_failures
from django_rtq.core.tasks import registry
from tests.app import django_tasks as tasks
from tests.app import tasks as own_tasks
from tests.support.jobs import QUEUE

BACKEND = "django_rtq.backend.RTQBackend"


def pay(order):
    """A function to declare."""


def with_options(queues=(), **options):
    return override_settings(TASKS={"default": {"BACKEND": BACKEND, "QUEUES": list(queues), "OPTIONS": options}})


def test_a_job_waits_in_its_queue_as_one_of_delay(broker, readers):
    result = tasks.note.enqueue("x")

    details = readers.find(result.id, "other")
    assert (details.state, details.task, details.args) == ("queued", "tests.app.django_tasks.note", ["x"])
    assert (details.priority, details.client) == (7, "")
    assert (result.status, result.args, result.kwargs) == (TaskResultStatus.READY, ["x"], {})
    assert (result.attempts, result.errors, result.started_at, result.finished_at) == (0, [], None, None)
    assert abs(result.enqueued_at - datetime.now(timezone.utc)) < timedelta(seconds=5)
    assert result.backend == "default"


@pytest.mark.parametrize("task", [tasks.add, tasks.note, tasks.attempt_of, tasks.note.using(priority=-3)])
def test_its_result_can_be_read_at_once_and_is_equal(broker, task):
    result = task.enqueue("x")

    assert task.get_result(result.id) == result
    assert task_backends["default"].get_result(result.id).task == task


def test_arguments_have_to_be_json(broker, redis):
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.add.enqueue(datetime.now())
    assert tasks.add.enqueue((1, b"2")).args == [[1, "2"]]


def test_arguments_have_to_fit_the_function(broker):
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        tasks.add.enqueue()


def test_run_after_is_a_moment_or_a_time_from_now(broker, readers):
    moment = datetime.now(timezone.utc) + timedelta(hours=1)
    for run_after in (moment, timedelta(hours=1), 3600):
        result = tasks.add.using(run_after=run_after).enqueue(1)

        details = readers.find(result.id, QUEUE)
        assert details.state == "scheduled"
        assert abs(details.due_at - moment) < timedelta(seconds=5)
        assert result.status is TaskResultStatus.READY


def test_our_options_come_from_using_from_options_and_from_the_decorator(broker, readers):
    with with_options(time_limit=7, result_ttl=60):
        result = tasks.add.using(client="acme", max_attempts=4).enqueue(1)

    details = readers.find(result.id, QUEUE)
    assert details.client == "acme"
    assert details.options == {"max_attempts": 4, "time_limit": 7, "result_ttl": 60}
    declared = registry.get_task("tests.app.django_tasks.add")
    assert (declared.max_attempts, declared.time_limit) == (1, None)


@pytest.mark.skipif(django.VERSION < (6, 1), reason="@task of earlier versions takes no other options")
def test_the_decorator_takes_our_options():
    from django.tasks import task

    declared = task(max_attempts=3, retry_on=OSError, backoff=constant(3), queue_name="mail")(pay)

    assert isinstance(declared, RTQTask)
    assert (declared.max_attempts, declared.rtq_task.retry_on) == (3, (OSError,))
    with pytest.raises(TypeError, match="unknown"):
        task(unknown=1)(pay)


def test_what_only_the_declaration_can_say_is_refused_in_a_copy():
    with pytest.raises(InvalidTask, match="retry_on"):
        tasks.add.using(retry_on=OSError)


def test_a_copy_is_no_declaration():
    copy = tasks.note.using(priority=1, queue_name="mail")

    assert copy != tasks.note
    assert tasks.note.using() == tasks.note
    assert hash(tasks.note.using()) == hash(tasks.note)
    assert registry.get_task("tests.app.django_tasks.note").priority == 7
    assert copy.rtq_task.priority == 1


def test_tasks_of_this_package_can_be_enqueued_by_both_doors(broker, readers):
    result = own_tasks.note.enqueue("x")
    handle = tasks.add.delay(1, 2)
    many = tasks.add.delay_many([((1,), {}), ((2,), {})])

    assert readers.find(result.id, QUEUE).task == "tests.app.tasks.note"
    assert result == own_tasks.note.get_result(result.id)
    assert readers.find(handle.id, QUEUE).task == "tests.app.django_tasks.add"
    assert [task_backends["default"].get_result(each.id).args for each in many] == [[1], [2]]
    assert async_to_sync(own_tasks.note.aenqueue)("y").args == ["y"]


def test_who_enqueues_sends_a_signal(broker, told):
    result = tasks.add.enqueue(1)

    assert told == [("enqueued", RTQBackend, result)]


def test_validation_needs_no_redis_and_happens_again_at_the_call():
    copy = tasks.add.using(queue_name="elsewhere")

    with with_options(queues=["mail"]), pytest.raises(InvalidTask, match="Queue 'elsewhere' is not valid"):
        copy.enqueue(1)
    with pytest.raises(InvalidTask, match="priority"):
        tasks.add.using(priority=101)


def test_wrong_options_of_a_backend_are_found_by_the_checks():
    with override_settings(
        TASKS={"default": {"BACKEND": BACKEND, "QUEUES": ["a b", "default"], "OPTIONS": {"max_atempts": 3}}}
    ):
        found = task_backends["default"].check()

        assert [error.id for error in found] == ["rtq.E005", "rtq.E005"]
        assert "Did you mean max_attempts?" in found[0].msg
        with pytest.raises(InvalidTask, match="max_atempts"):
            tasks.add.using(priority=1)
    assert task_backends["default"].check() == []


@pytest.mark.skipif(django.VERSION < (6, 1), reason="earlier versions cannot pickle tasks")
def test_tasks_and_results_can_be_pickled(broker):
    result = tasks.add.enqueue(1)

    assert pickle.loads(pickle.dumps(tasks.note)) == tasks.note
    assert pickle.loads(pickle.dumps(result)) == result
    assert dataclasses.asdict(result)["id"] == result.id


def test_django_logs_what_is_enqueued_if_that_is_logged(broker, caplog):
    with caplog.at_level("DEBUG", "django.tasks"), caplog.at_level("DEBUG", "django_tasks"):
        result = tasks.note.enqueue("x")
    assert f"Task id={result.id} path={tasks.note.module_path} enqueued backend=default" in caplog.text


def test_no_signal_is_made_for_nobody(broker, monkeypatch):
    monkeypatch.setattr(task_enqueued, "send_robust", None)
    monkeypatch.setattr(logging.getLogger(signals.log_task_enqueued.__module__.partition(".signals")[0]), "level", 30)

    assert not has_receivers()
    tasks.note.enqueue("x")


def test_a_receiver_in_place_of_the_log_of_django_is_told(broker, monkeypatch):
    heard = []
    monkeypatch.setattr(task_enqueued, "receivers", [])
    task_enqueued.connect(lambda sender, task_result, **kwargs: heard.append(task_result), weak=False)
    result = tasks.note.enqueue("x")
    task_enqueued.receivers.clear()

    assert heard == [result]


def test_a_task_finds_its_backend_again_when_a_test_changes_the_setting():
    before = tasks.note.get_backend()
    with with_options(max_attempts=7):
        assert tasks.note.get_backend().options == {"max_attempts": 7}
    assert tasks.note.get_backend().options == before.options


def test_a_job_does_not_start_before_it_was_enqueued():
    made = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    finished = made + timedelta(milliseconds=1)
    details = JobDetails(
        id="1", queue="other", state=JobState.SUCCEEDED, attempt=1, made_at=made, finished_at=finished, seconds=0.0015
    )

    assert result_of(tasks.note, details).started_at == made
    assert result_of(tasks.note, dataclasses.replace(details, seconds=5)).started_at == finished - timedelta(seconds=5)


@pytest.mark.parametrize(("state", "attempts"), [("dead", 8), ("succeeded", 8), ("running", 8)])
def test_attempts_are_counted_although_older_failures_are_not_kept(state, attempts):
    kept = 4 if state != "dead" else 5
    failures = [{"at": at, "attempt": 8 - kept + at, "worker": f"w{at}", "error": "no"} for at in range(kept)]
    errors = read_failures("\n".join(map(json.dumps, failures)).encode())
    now = datetime.now(timezone.utc)
    details = JobDetails(id="1", queue="other", state=JobState(state), attempt=8, made_at=now, errors=errors)
    result = result_of(tasks.note, dataclasses.replace(details, worker="w", finished_at=now))

    assert result.attempts == attempts
    assert result.worker_ids[:3] == ["", "", ""]
    assert result.worker_ids[-1] == ("w4" if state == "dead" else "w")


@pytest.mark.parametrize("name", ["123", "\ud800", "x\x00", "é"])
def test_an_id_that_is_no_id_is_unknown(broker, name):
    tasks.add.enqueue(1)
    with pytest.raises(TaskResultDoesNotExist, match=name if name == "123" else None):
        tasks.add.get_result(name)
    with pytest.raises(TaskResultDoesNotExist):
        async_to_sync(task_backends["default"].aget_result)(name)
