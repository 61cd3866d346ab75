"""A backend of TASKS whose jobs are in another Redis than those of RTQ."""

import os
import signal
import sys
from datetime import timedelta
from types import ModuleType

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from django_rtq import BrokerUnavailable, JobHandle, JobNotFound, RedisNotAllowed, every, rtq
from django_rtq.backend.compat import TaskResultDoesNotExist, TaskResultStatus, task_backends
from django_rtq.console.reading.readers import readers_of
from django_rtq.console.subjects.schedules import SCHEDULES
from django_rtq.core.broker.brokers import close_brokers, get_broker
from django_rtq.core.broker.task_backends import config_of, place_of, places
from django_rtq.core.checks import check_server
from django_rtq.core.conf.config import get_config
from django_rtq.core.scheduler.registry import declared_schedules, schedules_in
from django_rtq.core.scheduler.scheduler import Dispatcher
from django_rtq.core.tasks import registry
from django_rtq.databases.exactly_once import delete_committed_jobs
from django_rtq.databases.outbox import outbox_lag
from django_rtq.databases.relay import relay
from django_rtq.exceptions import ConfigurationError
from django_rtq.models import CommittedJob, OutboxJob, Schedule, sync_schedules
from django_rtq.testing import captured, drain, eager, private_redis
from tests.app import django_tasks as tasks
from tests.app import tasks as own_tasks
from tests.backend.conftest import BACKEND, finished, refreshed, reports_in, tasks_setting
from tests.markdown import blocks, read
from tests.support.commands import run
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
    journal.begin(own_tasks.note, "x")

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


# -- places


def several(**options):
    """TASKS with these OPTIONS of backends."""
    backends = {name: {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": own} for name, own in options.items()}
    return override_settings(TASKS={"default": {"BACKEND": BACKEND}, **backends})


def test_backends_with_one_server_database_and_prefix_share_it(broker):
    here = broker.config.redis
    with several(a={"REDIS": here}, b={"DB": 7}, c={"DB": 7, "max_attempts": 2}, d={"DB": 7, "PREFIX": "x"}, e={}):
        assert [place_of(name) for name in "abcde"] == ["", "b", "b", "d", ""]
        assert places() == ["", "b", "d"]
        assert get_broker("a") is get_broker()
        assert get_broker("b") is get_broker("c")
        assert (get_broker("d").config.prefix, get_broker("d").config.lease_seconds) == (
            "x",
            get_config().lease_seconds,
        )


def test_a_broker_is_kept_while_other_backends_come_and_go(broker, other_server):
    with reports_in(REDIS=other_server.url):
        own = get_broker("reports")
        assert readers_of("reports") is readers_of("reports")
    with reports_in(REDIS=other_server.url):
        assert get_broker("reports") is not own


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"REDIS": "http://x"}, 'TASKS[\'reports\']["OPTIONS"]["REDIS"] is a URL, but does not start with'),
        ({"DB": -1}, 'TASKS[\'reports\']["OPTIONS"]["DB"] is -1'),
        ({"PREFIX": "a b"}, "TASKS['reports'][\"OPTIONS\"][\"PREFIX\"] is 'a b'"),
        ({"REDIS": "default"}, "is not one of Redis"),
        ({"REDSI": "x"}, "Did you mean REDIS?"),
    ],
)
def test_wrong_values_are_found_by_the_checks(broker, options, said):
    with override_settings(TASKS=tasks_setting(**options)):
        (found,) = task_backends["reports"].check()

    assert (found.id, said in found.msg) == ("rtq.E005", True), found.msg


@pytest.mark.parametrize(
    ("options", "rtq", "said"),
    [
        ({"REDIS": "redis://x"}, {"REDIS": 5, "LEASE_SECONDS": 0}, 'RTQ["LEASE_SECONDS"] is 0'),
        ({"PREFIX": "x"}, {"REDIS": "http://x"}, 'RTQ["REDIS"] is a URL, but does not start with'),
        ({"PREFIX": "x"}, {"REDIS": "redis://x", "DB": -1}, 'RTQ["DB"] is -1'),
        ({"DB": 7}, {"REDIS": "http://x"}, 'RTQ["REDIS"] is a URL, but does not start with'),
    ],
)
def test_what_is_wrong_in_rtq_is_not_said_of_the_backend(broker, options, rtq, said):
    with override_settings(TASKS=tasks_setting(**options)), override_settings(RTQ=rtq):  # noqa: SIM117
        with pytest.raises(ConfigurationError) as caught:
            config_of("reports")

    assert (said in str(caught.value), "TASKS" in str(caught.value)) == (True, False), caught.value


def test_a_cache_in_the_same_database_is_found(broker):
    url = "redis://localhost:6399/3"
    caches = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": url}}
    with override_settings(CACHES=caches, TASKS=tasks_setting(REDIS=url)):
        (found,) = task_backends["reports"].check()
        assert (found.id, "the cache 'default'" in found.msg) == ("rtq.E005", True)
    with override_settings(CACHES=caches, TASKS=tasks_setting(REDIS="default", DB=4)):
        assert not task_backends["reports"].check()
        assert str(get_broker("reports").connection_settings) == "redis://localhost:6399/4"


def test_a_name_that_is_not_in_tasks(broker):
    with reports_in(PREFIX="x"), pytest.raises(ConfigurationError, match=r"no backend 'report'\. Did"):
        get_broker("report")


# -- commands


def test_commands_look_at_the_redis_that_is_named(report_tasks, broker):
    job = report_tasks.build.delay("x")
    own_tasks.note.delay("y")

    status = run("rtq", "--json", "--backend", "reports").json
    assert [queue["name"] for queue in status["queues"]] == ["reports"]
    assert status["unserved"] == ["default", "reports"]
    assert [queue["name"] for queue in run("rtq", "--json").json["queues"]] == ["default"]
    assert [each["id"] for each in run("rtq_jobs", "list", "--json", "--backend", "reports").json["jobs"]] == [job.id]
    assert run("rtq_jobs", "cancel", job.id, "--backend", "reports").code == 0
    assert job.state == "cancelled"
    assert "no backend 'nope'" in run("rtq_queues", "list", "--backend", "nope").error
    assert readers_of() is not readers_of("reports")


def test_metrics_are_those_of_one_redis(report_tasks, broker):
    pytest.importorskip("prometheus_client")
    report_tasks.build.delay("x")

    assert 'queue="reports"' in run("rtq_metrics", "--backend", "reports").out
    assert 'queue="reports"' not in run("rtq_metrics").out


# -- schedules


@pytest.fixture
def scheduled(report_tasks):
    schedule = every(minutes=5, name="build", args=["x"])
    object.__setattr__(report_tasks.build.rtq_task, "schedule", (schedule,))
    return report_tasks.build.rtq_task


def test_each_scheduler_starts_the_periodic_jobs_of_its_backend(scheduled, broker):
    assert [entry.name for entry in schedules_in("reports", get_config())] == ["build"]
    assert "build" not in [entry.name for entry in schedules_in("", get_config())]
    assert "build" in [entry.name for entry in declared_schedules(get_config())]
    queues = ["default", "reports"]
    assert [entry.name for entry in Dispatcher(get_broker("reports"), queues).entries] == ["build"]
    assert "build" not in [entry.name for entry in Dispatcher(broker, queues).entries]


def rows_in(*places):
    return [[*get_broker(place).schedules.read().rows] for place in places]


@pytest.mark.django_db
def test_rows_of_the_database_go_to_the_redis_of_their_task(report_tasks, broker):
    there = Schedule(name="there", task="tests.app.report_tasks.build", args=["x"], every=60, tz="", enabled=True)
    here = Schedule(name="here", task="tests.app.tasks.note", args=["x"], every=60, tz="", enabled=True)
    Schedule.objects.bulk_create([there, here])

    assert sync_schedules() == 2
    assert rows_in("", "reports") == [["here"], ["there"]]
    rows = {status.name: status.row for status in SCHEDULES.read(readers_of()) if status.row}
    assert rows == {row.name: row.as_row() for row in (here, there)}
    Schedule.objects.filter(name="there").update(args=["x", "y", "z"])  # which its task does not take
    assert sync_schedules() == 1
    assert rows_in("", "reports") == [["here"], ["there"]]
    with several():
        assert sync_schedules() == 0
    Schedule.objects.all().delete()
    assert sync_schedules() == 2


def test_schedules_are_listed_and_disabled_where_they_are(scheduled, broker):
    assert [each["name"] for each in run("rtq_schedule", "list", "--json", "--backend", "reports").json] == ["build"]
    assert run("rtq_schedule", "disable", "build", "--backend", "reports").code == 0
    assert get_broker("reports").schedules.read().switches
    assert not broker.schedules.read().switches
    assert "There is no schedule 'build'" in run("rtq_schedule", "disable", "build").error


# -- exactly once


@pytest.mark.django_db
def test_rows_of_exactly_once_are_kept_while_any_redis_has_the_job(report_tasks, broker):
    there, here = report_tasks.build.delay("x"), own_tasks.note.delay("y")
    long_ago = timezone.now() - timedelta(days=30)
    for job_id, queue in ((there.id, "reports"), (here.id, "default"), ("gone", "default")):
        CommittedJob.objects.create(job_id=job_id, queue=queue, committed_at=long_ago)

    assert delete_committed_jobs("default") == 1
    assert {row.pk for row in CommittedJob.objects.all()} == {there.id, here.id}


# -- tests of projects


def test_captured_and_eager_take_the_jobs_of_all_backends(report_tasks, broker, journal):
    with captured() as jobs:
        result = report_tasks.build.enqueue("x")
        own_tasks.note.delay("y")
        result.refresh()
    assert [job.queue for job in jobs] == ["reports", "default"]
    with eager():
        result = report_tasks.build.enqueue("x")
        result.refresh()
        assert (result.return_value, result.backend) == ("x is built", "reports")
        assert report_tasks.build.delay("z").get() == "z is built"


def test_a_redis_for_tests_takes_the_place_of_all(report_tasks, redis_server, journal):
    with private_redis(redis_server.url):
        result = report_tasks.order.enqueue("x")
        finished = drain()

        assert places() == [""]
        assert {run.task.rpartition(".")[2] for run in finished} == {"order", "build", "note"}
        result.refresh()
        assert result.return_value
    assert not readers_of("reports").queues.names()


def test_the_redis_of_a_backend_of_the_project_is_refused(broker, monkeypatch):
    url = "redis://localhost:6398/0"
    monkeypatch.setattr("django_rtq.core.conf.config._redis_of_project", lambda: ["redis://localhost:6379/0", url])
    with (
        override_settings(TASKS=tasks_setting(REDIS=url)),
        pytest.raises(RedisNotAllowed, match="that of a backend in TASKS"),
    ):
        tasks.add.using(backend="reports").enqueue(1)


def test_servers_of_backends_are_checked_before_a_deployment(broker, other_server):
    with override_settings(RTQ={**settings.RTQ, "LEASE_SECONDS": 15}):
        with reports_in(REDIS=other_server.url):
            warned = [message.msg for message in check_server() if message.id == "rtq.W002"]
        with reports_in(REDIS=f"{other_server.url[:-2]}/99"):
            (wrong,) = [message.msg for message in check_server() if message.id == "rtq.E004"]
        close_brokers()

    assert [text for text in warned if text.startswith("TASKS['reports']: ")]
    assert wrong.startswith("TASKS['reports']: ")


# -- jobs of one transaction that go to two Redis servers


UNREACHABLE = "redis://127.0.0.1:1/0"


@pytest.fixture
def with_outbox(transactional_db, other):
    with override_settings(RTQ={**settings.RTQ, "OUTBOX": True}):
        yield
        get_broker().close()
        get_broker("reports").close()


def names(backend):
    """The arguments of the jobs that are queued."""
    found = readers_of(backend).search([("default", "queued")]).page().jobs
    return [job.args[0] for job in found]


def enqueue(*where):
    """Jobs of one transaction, by their backends."""
    with transaction.atomic():
        return [
            tasks.add.using(backend=backend, on_commit=True).enqueue(f"{backend} {number}")
            for number, backend in enumerate(where)
        ]


def test_they_are_sent_in_one_round_trip_to_each(transactional_db, other, round_trips):
    enqueue("default", "reports")
    round_trips.clear()

    results = enqueue("reports", "default", "reports", "default")

    assert len(round_trips) == 2
    assert names("")[1:] == ["default 1", "default 3"]
    assert names("reports")[1:] == ["reports 0", "reports 2"]
    for result in results:
        result.refresh()


def test_one_server_is_down(transactional_db, broker, told):
    with reports_in(REDIS=UNREACHABLE), pytest.raises(BrokerUnavailable):
        enqueue("reports", "default")

    assert names("") == ["default 1"]
    assert [result.args for _, _, result in told] == [["default 1"]]


def test_rows_of_the_outbox_know_where_they_belong(with_outbox, other):
    with transaction.atomic():
        tasks.add.using(backend="reports").enqueue("there")
        own_tasks.note.delay("here")
        assert {row.backend for row in OutboxJob.objects.all()} == {"", "reports"}
    assert (names(""), names("reports")) == (["here"], ["there"])
    assert not OutboxJob.objects.exists()


def test_each_relay_sends_the_rows_of_its_redis(with_outbox, other_server):
    with reports_in(REDIS=UNREACHABLE):
        job = tasks.add.using(backend="reports").delay("at once")
        result, _ = enqueue("reports", "default")
        OutboxJob.objects.update(due_at=timezone.now())
        assert outbox_lag("").jobs == 0
        assert relay(get_broker(), "default") == 0
        with pytest.raises(BrokerUnavailable):
            relay(get_broker("reports"), "default")
    assert OutboxJob.objects.count() == 2

    with reports_in(REDIS=other_server.url):
        assert relay(get_broker("reports"), "default") == 2
        assert (names(""), names("reports")) == (["default 1"], ["at once", "reports 0"])
        assert job.state == "queued"
        result.refresh()
    assert not OutboxJob.objects.exists()


def test_rows_of_a_backend_that_is_gone_are_kept_and_told(with_outbox, caplog):
    with reports_in(REDIS=UNREACHABLE):
        enqueue("reports")
    OutboxJob.objects.update(due_at=timezone.now(), backend="gone")

    assert relay(get_broker(), "default") == 1
    assert "TASKS has no backend 'gone'" in OutboxJob.objects.get().error
    assert "stays in the outbox" in caplog.text


# -- the example of the docs


def test_it_runs(broker, other_server, monkeypatch):
    pytest.importorskip("django.tasks")
    *_, (_, given), (_, code) = blocks(read("docs/django-tasks.md"))
    options, module = {}, ModuleType("shop.reports")
    exec(compile(given, "docs/django-tasks.md", "exec"), options)
    options["TASKS"]["reports"]["OPTIONS"]["REDIS"] = other_server.url
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with override_settings(TASKS=options["TASKS"]):
        assert not task_backends["reports"].check()
        exec(compile(code, "docs/django-tasks.md", "exec"), vars(module))
        result = module.ask_for("May")

        assert module.count_waiting() == 1
        assert module.build.get_result(result).args == ["May"]
        assert readers_of().queues.names() == []
        assert module.build.rtq_task.time_limit == 3600
        readers_of("reports").sweeps.purge_some("reports", None)
        get_broker("reports").close()
