"""Check-ins of jobs that schedules start."""

import time

import pytest

pytest.importorskip("sentry_sdk")

from django_rtq import Retry, constant, cron, every, task
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.scheduler.registry import ScheduledTask, declared_schedules
from django_rtq.exceptions import ConfigurationError
from django_rtq.monitoring.sentry import CONFIG, SLUG, RTQIntegration, monitor_headers, slug_of
from django_rtq.testing import drain
from tests.monitoring.fake_sentry import check_ins, fake_sentry, transactions
from tests.support.jobs import QUEUE, take
from tests.support.line_files import json_lines
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("without_sentry")
HOUR_MS = 3_600_000


def report(how=""):
    if how == "bad":
        raise ValueError("no paper")
    if how == "once" and not report.has_run:
        report.has_run = True
        raise Retry(after=0)


@pytest.fixture
def monitored(without_sentry, rtq_settings, monkeypatch):
    """All schedules are monitored. Gives the list of what was sent."""
    monkeypatch.setattr(report, "has_run", False, raising=False)
    with fake_sentry(monitor_schedules=True) as sent:  # before there is a broker, which knows the middleware
        yield sent
        get_broker().close()


def fire(schedule, slot_ms=HOUR_MS, **options):
    """Fire a slot of a schedule. Returns the entry."""
    declared = task(schedule=schedule, **options)(report)
    entry = ScheduledTask(task=declared, schedule=declared.schedule[0])
    get_broker().schedules.begin(declared.queue, entry.name, entry.definition, 0)
    assert entry.fire(get_broker(), slot_ms) == "fired"
    return entry


def test_a_run_is_one_check_in(monitored):
    fire(cron("0 5 * * mon-fri", tz="Europe/Berlin", name="Morning report"))
    drain(raise_errors=False)

    began, ended = check_ins(monitored)
    assert began["check_in_id"] == ended["check_in_id"]
    assert (began["status"], ended["status"]) == ("in_progress", "ok")
    assert began["duration"] is None
    assert 0 <= ended["duration"] < 60
    for each in (began, ended):
        assert each["monitor_slug"] == "morning-report-ff4e4e31"
        assert each["monitor_config"] == {
            "schedule": {"type": "crontab", "value": "0 5 * * mon-fri"},
            "timezone": "Europe/Berlin",
        }


@pytest.mark.parametrize(("how", "end"), [("once", "ok"), ("bad", "error")])
def test_each_run_is_a_check_in_of_its_own_also_one_that_fails(monitored, how, end):
    fire(every(hours=1, args=[how]), max_attempts=2, backoff=constant(0))
    drain(raise_errors=False)
    found = check_ins(monitored)
    assert [each["status"] for each in found] == ["in_progress", end] * 2
    assert len({each["check_in_id"] for each in found}) == 2


def test_other_jobs_are_not_monitored(monitored):
    entry = fire(every(hours=1))
    drain(raise_errors=False)
    monitored.clear()
    entry.task.delay()
    drain(raise_errors=False)
    assert check_ins(monitored) == []
    assert len(transactions(monitored)) == 1


def test_each_firing_is_a_trace_of_its_own(monitored):
    entry = fire(every(hours=1))
    assert entry.fire(get_broker(), 2 * HOUR_MS) == "fired"
    drain(raise_errors=False)
    first, second = transactions(monitored)
    assert first["contexts"]["trace"]["trace_id"] != second["contexts"]["trace"]["trace_id"]


def test_off_it_adds_nothing(broker):
    with fake_sentry() as sent:
        fire(every(hours=1))
        assert SLUG not in take(broker).headers
    assert check_ins(sent) == []


def test_only_named_schedules_with_entries_of_their_own():
    chosen = {"nightly": {"max_runtime": 120, "failure_issue_threshold": 2}}
    assert monitor_headers(chosen, every(hours=1, name="hourly")) == {}
    assert monitor_headers(chosen, every(days=1, name="nightly"))[CONFIG] == {
        "schedule": {"type": "interval", "value": 1, "unit": "day"},
        "timezone": "UTC",
        "max_runtime": 120,
        "failure_issue_threshold": 2,
    }


def test_what_is_monitored_must_be_a_bool_or_a_dictionary():
    with pytest.raises(ConfigurationError, match=r"monitor_schedules is \['nightly'\], but has to be True, False"):
        RTQIntegration(monitor_schedules=["nightly"])


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (cron("@daily", tz="Asia/Tokyo", name="a"), {"type": "crontab", "value": "0 0 * * *"}),
        (cron("30 */5 * * * ?", name="a"), {"type": "crontab", "value": "*/5 * * * *"}),
        (every(minutes=90, name="a"), {"type": "interval", "value": 90, "unit": "minute"}),
        (every(hours=48, name="a"), {"type": "interval", "value": 2, "unit": "day"}),
        (every(hours=7, name="a"), {"type": "interval", "value": 7, "unit": "hour"}),
    ],
)
def test_the_schedule_of_a_monitor(schedule, expected):
    config = monitor_headers(True, schedule)[CONFIG]
    assert config["schedule"] == expected
    assert config["timezone"] == (schedule.tz or "UTC")


@pytest.mark.parametrize("seconds", [10, 90])
def test_intervals_that_sentry_does_not_know_are_not_monitored(seconds):
    assert monitor_headers(True, every(seconds=seconds, name="odd")) == {}


def test_slugs_are_valid_and_differ():
    assert slug_of("nightly_clean-up") == "nightly_clean-up"
    assert slug_of("shop.tasks.sync#2") == "shop-tasks-sync-2-e487dfc6"
    odd = [
        "每日报告",
        "每周报告",
        "x" * 51,
        "x" * 52,
        "2024",
        "#",
        "daily report",
        "daily.report",
        "daily/report",
        "Daily.report",
    ]
    slugs = [slug_of(name) for name in odd]
    assert len(set(slugs)) == len(odd)
    for slug in slugs:
        assert 0 < len(slug) <= 50
        assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
        assert not slug.isdigit()


# -- real workers with their schedulers


@pytest.fixture
def sent_by(rtq_worker, broker, tmp_path):
    """Start a worker whose schedule `hourly` has missed one slot. Returns a function for what it has sent."""
    path = tmp_path / "sent"

    def start(name, *args, **options):
        schedules = {"hourly": {"task": f"tests.app.tasks.{name}", "every": 3600, "args": list(args)}}
        config = broker.config.__class__(schedules=schedules)
        (entry,) = (each for each in declared_schedules(config) if each.name == "hourly")
        now_ms = time.time_ns() // 1_000_000
        broker.register_queues([QUEUE])
        broker.schedules.begin(QUEUE, "hourly", entry.definition, now_ms - 2 * HOUR_MS)
        environment = {"DJANGO_SETTINGS_MODULE": "tests.app.sentry_monitor_settings", "RTQ_TEST_SENTRY": str(path)}
        rtq_worker(SCHEDULES=schedules, environment=environment, is_ready=False, **options)
        return lambda: check_ins(json_lines(path))

    return start


def test_a_worker_with_its_scheduler_sends_check_ins(sent_by):
    sent = sent_by("note", "x")
    wait_until(lambda: [each["status"] for each in sent()] == ["in_progress", "ok"])
    began, ended = sent()
    assert began["check_in_id"] == ended["check_in_id"]
    assert ended["monitor_slug"] == "hourly"
    assert ended["monitor_config"]["schedule"] == {"type": "interval", "value": 1, "unit": "hour"}
    assert ended["duration"] > 0
