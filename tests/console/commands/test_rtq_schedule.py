"""rtq_schedule: what schedules there are, starting one by hand, and switches, of what is declared and of rows."""

import re
from contextlib import contextmanager
from datetime import datetime, timezone

import pytest
from django.db import DatabaseError
from django.test import override_settings

from django_rtq import cron, every, task
from django_rtq.core.scheduler.scheduler import Dispatcher
from django_rtq.core.tasks import registry
from django_rtq.models import Schedule, copy_schedules
from tests.support.commands import run
from tests.support.jobs import QUEUE, take
from tests.support.redis_server import UNREACHABLE

TASK = f"{__name__}.report"


def report(number=0):
    """A function to be made a task."""


def other():
    """Another one."""


@pytest.fixture(autouse=True)
def schedules(no_tasks):
    """Two of them, in two queues."""
    daily = cron("0 5 * * *", tz="Europe/Berlin", name="daily", args=[7], overlap="skip")
    task(schedule=daily)(report)
    task(schedule=every(seconds=0.1, name="often", missed="skip"), queue_name="low")(other)


@pytest.fixture
def fired(broker):
    """The id of the job of "daily"."""
    (entry,) = Dispatcher(broker, [QUEUE]).entries
    broker.schedules.begin(QUEUE, "daily", entry.schedule.definition, 1_000_000_000_000)
    assert entry.fire(broker, 1_700_000_000_000) == "fired"
    return entry.job_id(1_700_000_000_000)


def test_a_list_of_schedules_that_nobody_has_looked_at_yet(broker):
    ran = run("rtq_schedule", "list")

    heading, daily, often = ran.out.splitlines()
    assert heading.split("  ")[0] == "SCHEDULE"
    assert daily.split()[:4] == ["daily", "yes", "code", TASK]
    assert re.search(r"At 05:00 every day \(Europe/Berlin\)  -            skip     -         in \d+ (min|h|s)  ", daily)
    assert daily.endswith("No scheduler is running for queue default.")
    assert "skip         -        -" in often
    assert "Every 0.1 s" in often


def test_the_same_in_json(broker, fired):
    daily, often = run("rtq_schedule", "list", "--json").json

    next_slot = daily.pop("next_slot")
    assert daily.pop("problem").endswith("was missed: no scheduler is running for queue default.")
    assert next_slot[10:] in ("T03:00:00+00:00", "T04:00:00+00:00")
    assert daily == {
        "name": "daily",
        "task": TASK,
        "queue": QUEUE,
        "source": "code",
        "enabled": True,
        "when": "At 05:00 every day (Europe/Berlin)",
        "cron": "0 5 * * *",
        "every_seconds": None,
        "start": None,
        "tz": "Europe/Berlin",
        "missed": "once",
        "overlap": "skip",
        "last_slot": "2023-11-14T22:13:20+00:00",
        "last_job": fired,
        "last_state": "queued",
    }
    assert (often["cron"], often["every_seconds"], often["tz"], often["last_slot"]) == (None, 0.1, None, None)


def test_the_start_of_an_interval_is_told(broker):
    first = datetime(2026, 11, 24, 9, 0, 5, tzinfo=timezone.utc)
    task(schedule=every(hours=2, start=first, name="shifted", args=[1]))(report)

    (shifted,) = [line for line in run("rtq_schedule", "list", "--json").json if line["name"] == "shifted"]

    assert (shifted["every_seconds"], shifted["start"]) == (7200, "2026-11-24T09:00:05+00:00")
    assert "Every 2 hours, counted from 2026-11-24 09:00:05 UTC" in run("rtq_schedule", "list").out


@pytest.mark.django_db
def test_no_schedules_at_all(broker):
    registry._tasks.clear()

    assert run("rtq_schedule", "list").out.startswith("There are no schedules: see @task(schedule=...)")
    assert run("rtq_schedule", "list", "--json").json == []


def test_run_enqueues_the_job_now_and_prints_its_id(broker, readers):
    ran = run("rtq_schedule", "run", "daily")

    job = take(broker)
    assert ran.out == f"{job.id}\n"
    assert (job.task, job.args) == (TASK, [7])
    assert broker.schedules.states([QUEUE])[1][QUEUE] == {}  # its slots are another matter
    assert readers.find(job.id).queue == QUEUE


@pytest.mark.parametrize(
    ("name", "problem"),
    [("dayly", "There is no schedule 'dayly'. Did you mean 'daily'?"), ("x", "See rtq_schedule list.")],
)
@pytest.mark.parametrize("action", ["run", "disable"])
def test_a_name_that_is_unknown(broker, action, name, problem):
    ran = run("rtq_schedule", action, name)

    assert (ran.code, problem in ran.error, ran.out) == (1, True, "")


def test_run_says_when_there_is_such_a_job_already(broker):
    task(unique=True, schedule=every(hours=1, name="hourly"))(report)
    first = run("rtq_schedule", "run", "hourly")

    second = run("rtq_schedule", "run", "hourly")

    assert (first.err, second.out) == ("", first.out)
    assert second.err.startswith("No job was enqueued: the task is unique")
    assert take(broker).id == first.out.strip()


def test_a_schedule_that_makes_no_sense():
    with override_settings(RTQ={"REDIS": UNREACHABLE, "SCHEDULES": {"a": {"task": TASK}}}):
        ran = run("rtq_schedule", "list")

    assert (ran.code, ran.error) == (
        1,
        'RTQ["SCHEDULES"][\'a\']: exactly one of "cron" and "every" (seconds) is required.',
    )


# -- rows of the database, and switches


@pytest.fixture
def nightly(transactional_db, broker):
    row = Schedule(name="nightly", task=TASK, args=[7], cron="0 5 * * *", queue="low")
    row.save()
    return row


def shown(name):
    """What the list tells of one."""
    return next(line for line in run("rtq_schedule", "list", "--json").json if line["name"] == name)


def test_what_is_declared_is_switched_for_all(redis, broker):
    assert run("rtq_schedule", "disable", "often").out == "often is disabled.\n"
    assert run("rtq_schedule", "disable", "often").out == "often is disabled already.\n"
    assert (shown("often")["enabled"], shown("often")["next_slot"]) == (False, None)
    assert "  no       code  " in run("rtq_schedule", "list").out

    answer = run("rtq_schedule", "enable", "often", "--json").json

    assert answer == {"name": "often", "enabled": True, "changed": True}
    assert shown("often")["enabled"]
    assert redis.exists("{rtq:low}:due_signal")


def test_a_row_is_switched_in_the_database(broker, nightly):
    assert run("rtq_schedule", "disable", "nightly", "--json").json["changed"]
    assert not Schedule.objects.get().enabled
    assert not shown("nightly")["enabled"]
    assert run("rtq_schedule", "enable", "nightly").out == "nightly is enabled.\n"
    assert Schedule.objects.get().enabled


def test_a_row_is_listed_and_started_like_all_others(broker, nightly):
    line = shown("nightly")
    assert (line["source"], line["queue"], line["task"], line["cron"]) == ("admin", "low", TASK, "0 5 * * *")

    answer = run("rtq_schedule", "run", "nightly", "--json").json
    assert answer["queue"] == "low"
    assert answer["job"] == take(broker, queue="low").id


def test_a_row_whose_task_is_gone_is_told_and_can_be_switched_off(broker, nightly):
    registry._tasks.clear()

    assert "No task" in run("rtq_schedule", "list").out
    assert "No task" in shown("nightly")["problem"]
    assert run("rtq_schedule", "run", "nightly").code == 1
    assert run("rtq_schedule", "disable", "nightly").out == "nightly is disabled.\n"
    for options in ([], ["--dry-run"]):
        ran = run("rtq_schedule", "enable", "nightly", *options)
        assert (ran.code, ran.error.startswith("nightly is invalid: No task")) == (1, True)
    assert not Schedule.objects.get().enabled


def test_sync_brings_back_what_redis_has_lost(redis, broker, nightly):
    redis.delete("rtq:plan")
    assert "nightly" not in run("rtq_schedule", "list").out

    assert run("rtq_schedule", "sync").out == "1 schedule changed in Redis.\n"
    assert run("rtq_schedule", "sync", "--json").json == {"changed": 0}
    assert shown("nightly")["enabled"]


def test_a_row_that_is_not_in_the_database_any_more(broker, nightly):
    Schedule.objects.filter(name="nightly")._raw_delete("default")

    ran = run("rtq_schedule", "disable", "nightly")

    assert (ran.code, ran.error) == (1, "nightly is not in the database any more: run rtq_schedule sync.")


@pytest.fixture
def without_database(monkeypatch):
    """Within it the database does not answer."""

    @contextmanager
    def away():
        def refuse(*args, **options):
            raise DatabaseError("no such table")

        with monkeypatch.context() as patch:
            patch.setattr("django.db.models.query.QuerySet._fetch_all", refuse)
            yield

    return away


@pytest.mark.parametrize("action", [["sync"], ["disable", "nightly"]])
def test_a_database_that_is_away_is_told(broker, nightly, without_database, action):
    with without_database():
        ran = run("rtq_schedule", *action)

    assert (ran.code, ran.error) == (1, "The database did not answer: no such table")


# -- what workers and schedulers do at their start


def test_whoever_starts_a_scheduler_brings_the_rows(redis, broker, nightly):
    redis.delete("rtq:plan")
    Schedule.objects.update(cron="@daily")

    copy_schedules()

    assert broker.schedules.read().rows["nightly"]["cron"] == "@daily"


def test_it_starts_without_a_database_too(broker, nightly, without_database, caplog):
    with without_database(), caplog.at_level("INFO", "django_rtq"):
        copy_schedules()

    assert (
        "could not copy the schedules from the database to Redis: no such table. Run: manage.py migrate" in caplog.text
    )
    assert list(broker.schedules.read().rows) == ["nightly"]


@pytest.mark.django_db
def test_it_starts_without_redis_too(caplog):
    with override_settings(RTQ={"REDIS": UNREACHABLE}), caplog.at_level("INFO", "django_rtq"):
        copy_schedules()

    assert "could not copy the schedules" in caplog.text
