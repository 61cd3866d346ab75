"""Which backends share a Redis, wrong settings, commands, schedules and tests of projects."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from django_rtq import RedisNotAllowed, every
from django_rtq.backend.compat import task_backends
from django_rtq.console.reading.readers import readers_of
from django_rtq.console.schedule_status import row_statuses
from django_rtq.core.broker.brokers import close_brokers, get_broker
from django_rtq.core.broker.task_backends import config_of, place_of, places
from django_rtq.core.checks import check_server
from django_rtq.core.conf.config import get_config
from django_rtq.core.scheduler.registry import declared_schedules, schedules_in
from django_rtq.core.scheduler.scheduler import Dispatcher
from django_rtq.databases.committed_jobs import delete_committed_jobs
from django_rtq.exceptions import ConfigurationError
from django_rtq.models import CommittedJob, Schedule, sync_schedules
from django_rtq.testing import captured, drain, eager, private_redis
from tests.app import django_tasks as tasks
from tests.app import tasks as own_tasks
from tests.backend.own_redis import BACKEND, reports_in, tasks_setting
from tests.support.commands import run

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
    """A schedule of a task of "reports"."""
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


@pytest.mark.django_db
def test_rows_of_the_database_go_to_the_redis_of_their_task(report_tasks, broker):
    there = Schedule(name="there", task="tests.app.report_tasks.build", args=["x"], every=60, tz="", enabled=True)
    here = Schedule(name="here", task="tests.app.tasks.note", args=["x"], every=60, tz="", enabled=True)
    Schedule.objects.bulk_create([there, here])

    assert sync_schedules() == 2
    assert (list(broker.schedules.read().rows), list(get_broker("reports").schedules.read().rows)) == (
        ["here"],
        ["there"],
    )
    statuses = row_statuses(readers_of(), {row.name: row.as_row() for row in (here, there)})
    assert {(status.name, status.is_in_redis) for status in statuses} == {("here", True), ("there", True)}
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
