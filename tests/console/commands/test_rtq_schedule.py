"""rtq_schedule: what schedules there are, and starting one of them by hand."""

import re
from datetime import datetime, timezone

import pytest
from django.test import override_settings

from django_rtq import cron, every, task
from django_rtq.core.scheduler.scheduler import Dispatcher
from django_rtq.core.tasks import registry
from tests.support.claims import take
from tests.support.commands import run
from tests.support.jobs import QUEUE
from tests.support.redis_server import UNREACHABLE

TASK = f"{__name__}.report"


def report(number=0):
    """A function to be made a task."""


def other():
    """Another one."""


@pytest.fixture(autouse=True)
def schedules(monkeypatch):
    """Two of them, in two queues."""
    monkeypatch.setattr(registry, "_tasks", {})
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
def test_no_schedules_at_all(broker, monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {})

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
