"""A backend of TASKS whose jobs are in another Redis than those of RTQ."""

import os
import signal

import pytest
from asgiref.sync import async_to_sync

from django_rtq import JobHandle, JobNotFound, rtq
from django_rtq.backend.compat import TaskResultDoesNotExist, TaskResultStatus, task_backends
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.tasks import registry
from tests.app import django_tasks as tasks
from tests.app import tasks as own_tasks
from tests.backend.results import finished, refreshed
from tests.support.waiting import wait_until

READY, RUNNING, FAILED, SUCCESSFUL = (TaskResultStatus[name] for name in ("READY", "RUNNING", "FAILED", "SUCCESSFUL"))


def test_jobs_are_stored_in_the_redis_of_their_backend(report_tasks, redis, other):
    here, there = tasks.add.enqueue(1), tasks.add.using(backend="reports").enqueue(2)
    declared = report_tasks.build.enqueue("x")

    assert readers_of().find(here.id, "default").args == [1]
    assert readers_of("reports").find(there.id, "default").args == [2]
    assert readers_of("reports").find(declared.id, "reports").args == ["x"]
    assert readers_of().queues.names() == ["default"]
    assert readers_of("reports").queues.names() == ["default", "reports"]


def test_results_and_handles_ask_the_redis_of_their_job(report_tasks, broker):
    result = report_tasks.build.enqueue("x")
    handle = report_tasks.build.delay("y")

    assert report_tasks.build.get_result(result.id) == result
    assert result.status is READY
    result.refresh()
    async_to_sync(result.arefresh)()
    assert task_backends["reports"].get_result(result.id).backend == "reports"
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(result.id)
    assert (handle.state, handle.backend) == ("queued", "reports")
    assert JobHandle(handle.id, "reports", backend="reports").state == "queued"
    assert handle.cancel() == "cancelled"
    with pytest.raises(JobNotFound):
        _ = JobHandle(handle.id, "reports").state


def test_coroutines(report_tasks):
    async def call():
        result = await report_tasks.build.aenqueue("x")
        (handle,) = await report_tasks.build.adelay_many([(("y",), {})])
        assert await handle.acancel() == "cancelled"
        return result, await report_tasks.build.aget_result(result.id)

    result, found = async_to_sync(call)()

    assert result == found
    assert readers_of("reports").find(result.id).args == ["x"]
    get_broker("reports").close()


def test_a_unique_job_is_unique_in_its_redis(report_tasks):
    task = report_tasks.build.using(unique=True)
    first = task.enqueue("x")

    assert task.enqueue("x").id == first.id
    assert task.using(backend="default").enqueue("x").id != first.id
    assert task.delay("x").duplicate


def test_a_copy_goes_where_it_is_said_and_the_declaration_stays(report_tasks, broker):
    here = report_tasks.build.using(backend="default").enqueue("x")
    there = own_tasks.note.enqueue("y")

    assert (here.backend, readers_of().find(here.id, "reports").args) == ("default", ["x"])
    assert readers_of().find(there.id).task == "tests.app.tasks.note"
    assert registry.get_task("tests.app.report_tasks.build").backend == "reports"


def test_a_worker_of_the_backend_runs_its_jobs_and_no_others(report_tasks, report_worker, broker, journal):
    worker = report_worker("--backend", "reports")
    result = report_tasks.order.enqueue("x")

    assert finished(result).status is SUCCESSFUL
    build = report_tasks.build.get_result(result.return_value)
    assert finished(build).return_value == "x is built"
    assert journal.names() == ["x"]
    (note,) = readers_of().search([("default", "queued")]).page().jobs  # of delay(), in RTQ["REDIS"]
    assert (note.task, note.args) == ("tests.app.tasks.note", ["x"])
    assert "queues default, reports" in worker.log
    assert worker.stop() == 0
    assert not readers_of("reports").workers()


def test_the_context_knows_its_backend(report_tasks, report_worker):
    report_worker("--backend", "reports")
    result = report_tasks.look.enqueue()
    undeclared = tasks.attempt_of.using(backend="reports").enqueue()

    assert finished(result).return_value == ["reports", "RUNNING"]
    assert finished(undeclared).return_value[1] == undeclared.id


def test_another_worker_says_whom_it_does_not_serve(report_tasks, report_worker, journal):
    worker = report_worker()
    own_tasks.note.delay("x")
    journal.wait("start", "x")

    said = "does not serve the Redis of reports in TASKS: start one with rtq_worker --backend reports"
    assert worker.log.count(said) == 1


def test_signals_of_its_jobs_have_its_backend(report_tasks, report_worker, journal, told):
    failed = report_tasks.fail.enqueue("no")
    retried = report_tasks.fail.using(max_attempts=2).enqueue("no")
    cancelled = report_tasks.build.using(run_after=3600).enqueue("x")
    report_worker("--backend", "reports")
    journal.wait("task_finished", f"{failed.id}-FAILED-ValueError")
    rtq.at("reports").job(cancelled.id).cancel()

    assert [(name, result.id, result.backend) for name, _, result in told if name == "finished"] == [
        ("finished", cancelled.id, "reports")
    ]
    wait_until(lambda: refreshed(retried).errors)
    assert retried.errors[0].exception_class is ValueError


def test_a_crash_is_told_by_its_supervisor(report_tasks, report_worker, journal):
    worker = report_worker("--backend", "reports", "--queues", "default")
    result = tasks.gate.using(backend="reports", max_crashes=0).enqueue("first", "gate")
    journal.wait("start", "first")
    os.kill(worker.child, signal.SIGKILL)

    assert journal.wait("task_finished", f"{result.id}-FAILED-None").pid == worker.pid
    assert refreshed(result).status is FAILED
    assert (result.backend, result.attempts) == ("reports", 1)
    assert result.errors[0].exception_class.__name__ == "WorkerLost"
