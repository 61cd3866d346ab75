"""rtq_import_celery_beat: schedules of Celery beat become ours.

Celery is no dependency of the tests: its objects are stood in for by others with the same attributes. Where Celery is
installed, its own are used, too.
"""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from django_rtq import task
from django_rtq.management.celery_beat import from_entries, from_rows
from django_rtq.models import Schedule
from django_rtq.tasks import registry
from tests.management.commands import run


def report(day, *, full=False):
    """A function to be made a task."""


@pytest.fixture(autouse=True)
def _task(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {})
    task(report)


REPORT = f"{__name__}.report"
COMMAND = "rtq_import_celery_beat"


def crontab(**fields):
    """As celery.schedules.crontab."""
    names = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
    return SimpleNamespace(**{f"_orig_{name}": fields.get(name, "*") for name in names}, run_every=timedelta())


def converted(schedule, **entry):
    entry = {"task": REPORT, "args": [1], **entry}
    (found,) = from_entries({"nightly": {"schedule": schedule, **entry}}, "Europe/Berlin")
    return found


@pytest.mark.parametrize(
    ("schedule", "moments"),
    [
        (30, {"every": 30}),
        (0.5, {"every": 0.5}),
        (timedelta(minutes=5), {"every": 300}),
        (SimpleNamespace(run_every=timedelta(hours=1)), {"every": 3600}),
        (crontab(minute=0, hour=5), {"cron": "0 5 * * *", "tz": "Europe/Berlin"}),
        (crontab(minute="*/15", day_of_week="mon-fri"), {"cron": "*/15 * * * mon-fri", "tz": "Europe/Berlin"}),
        (crontab(minute={30, 0}, hour="8, 20"), {"cron": "0,30 8,20 * * *", "tz": "Europe/Berlin"}),
        (crontab(minute="0", day_of_month="*/2", day_of_week=1), {"cron": "0 * */2 * 1", "tz": "Europe/Berlin"}),
    ],
)
def test_moments_are_converted(schedule, moments):
    found = converted(schedule)

    assert (found.problem, found.options) == ("", {"task": REPORT, **moments, "args": [1]})


@pytest.mark.parametrize(
    ("schedule", "entry", "problem"),
    [
        (crontab(day_of_month="1", day_of_week="mon"), {}, "it names days of the month and of the week: for Celery"),
        (crontab(hour="25"), {}, "is invalid"),
        (SimpleNamespace(event="sunset"), {}, "a schedule of type SimpleNamespace has no counterpart"),
        (None, {}, "a schedule of type NoneType has no counterpart"),
        (True, {}, "a schedule of type bool has no counterpart"),
        (0.01, {}, "is not between 0.1 s and a year"),
        (30, {"args": []}, "missing a required argument: 'day'"),
    ],
)
def test_what_has_no_counterpart_is_told(schedule, entry, problem):
    assert problem in converted(schedule, **entry).problem


def test_options_and_unknown_tasks_are_told():
    found = converted(30, task="elsewhere.task", options={"queue": "low", "expires": 60})

    assert found.queue == "low"
    assert found.notes == (
        "the option 'expires' is left out: set it with the task",
        "no task elsewhere.task is registered yet: declare it with @task",
    )


def row(**fields):
    """As a PeriodicTask of django-celery-beat."""
    names = ("interval", "crontab", "solar", "clocked", "queue", "exchange", "routing_key", "priority", "expires")
    plain = {**dict.fromkeys(names), "expire_seconds": None, "start_time": None, "one_off": False, "enabled": True}
    return SimpleNamespace(**{**plain, "name": "nightly", "task": REPORT, "args": "[1]", "kwargs": "{}", **fields})


def test_rows_are_converted():
    at_five = {"minute": "0", "hour": "5", "day_of_week": "*", "day_of_month": "*", "month_of_year": "*"}
    daily, often = from_rows(
        [
            row(crontab=SimpleNamespace(timezone="Asia/Tokyo", **at_five), kwargs='{"full": true}', enabled=False),
            row(interval=SimpleNamespace(every=90, period="minutes"), queue="low", priority=3),
        ]
    )

    assert daily.options == {
        "task": REPORT, "cron": "0 5 * * *", "tz": "Asia/Tokyo", "args": [1], "kwargs": {"full": True}
    }  # fmt: skip
    assert (daily.enabled, daily.notes) == (False, ())
    assert (often.options["every"], often.queue) == (5400, "low")
    assert often.notes == ("priority is left out: set options with the task",)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"one_off": True}, "it runs once: call using(run_after=...).delay() instead"),
        ({"solar": SimpleNamespace()}, "a solar schedule has no counterpart"),
        ({"clocked": SimpleNamespace()}, "a clocked schedule has no counterpart"),
        ({"interval": SimpleNamespace(every=1, period="hours"), "args": "no json"}, "Expecting value"),
    ],
)
def test_rows_without_a_counterpart_are_told(fields, problem):
    (found,) = from_rows([row(**fields)])

    assert problem in found.problem


@pytest.fixture
def beat_schedule(settings):
    settings.CELERY_TIMEZONE = "Europe/Berlin"
    settings.CELERY_BEAT_SCHEDULE = {
        "nightly": {"task": REPORT, "schedule": crontab(minute=30, hour=2), "args": (7,), "options": {"queue": "low"}},
        "often": {"task": REPORT, "schedule": 10.0, "kwargs": {"day": 1, "full": True}},
    }


def test_the_printed_code_declares_the_schedules(beat_schedule):
    ran = run(COMMAND, "settings")

    rtq = {}
    exec(ran.out, {"RTQ": rtq})
    assert (ran.code, ran.err) == (0, "")
    assert rtq["SCHEDULES"] == {
        "nightly": {"task": REPORT, "cron": "30 2 * * *", "tz": "Europe/Berlin", "args": [7]},
        "often": {"task": REPORT, "every": 10, "kwargs": {"day": 1, "full": True}},
    }
    assert "    # its queue was 'low': give it to the task, @task(queue_name='low')" in ran.out.splitlines()


def test_what_cannot_be_converted_is_told_and_the_rest_is_printed(beat_schedule, settings):
    settings.CELERY_BEAT_SCHEDULE["odd"] = {"task": REPORT, "schedule": "noon"}

    ran = run(COMMAND, "settings")

    assert (ran.code, ran.error) == (1, "1 of 3 schedules could not be converted.")
    assert ran.err == "Not converted: odd: a schedule of type str has no counterpart\n"
    assert "'nightly'" in ran.out


@pytest.mark.django_db
def test_rows_are_saved(beat_schedule, broker):
    assert run(COMMAND, "settings", "--save", "--dry-run").out == "Would save nightly.\nWould save often.\n"
    assert not Schedule.objects.exists()

    ran = run(COMMAND, "settings", "--save")

    assert (ran.code, ran.out) == (0, "Saved nightly.\nSaved often.\n")
    nightly, often = Schedule.objects.all()
    assert (nightly.cron, nightly.tz, nightly.queue, nightly.args) == ("30 2 * * *", "Europe/Berlin", "low", [7])
    assert (often.every, often.kwargs, often.enabled) == (10, {"day": 1, "full": True}, True)

    again = run(COMMAND, "settings", "--save")
    assert (again.code, again.error) == (1, "2 of 2 schedules could not be converted.")
    assert "already exists" in again.err


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("settings", 1, "The settings have no CELERY_BEAT_SCHEDULE."),
        ("database", 1, "django_celery_beat is not in INSTALLED_APPS."),
        ("no.such.app", 64, "'no.such.app' is not 'settings', 'database' or the path of a Celery app"),
    ],
)
def test_without_a_source_it_says_what_is_missing(source, code, message):
    ran = run(COMMAND, source)

    assert (ran.code, message in ran.error) == (code, True)


def test_the_schedule_of_an_app_is_read(monkeypatch):
    entry = {"task": REPORT, "schedule": crontab(minute=0, hour=1), "args": [1]}
    app = SimpleNamespace(conf=SimpleNamespace(beat_schedule={"nightly": entry}, timezone=None))
    monkeypatch.setattr("tests.app.tasks.celery_app", app, raising=False)

    assert "'cron': '0 1 * * *', 'tz': 'UTC'" in run(COMMAND, "tests.app.tasks.celery_app").out


def test_real_objects_of_celery_are_converted():
    schedules = pytest.importorskip("celery.schedules")

    assert converted(schedules.crontab(hour=5, minute=[0, 30])).options["cron"] == "0,30 5 * * *"
    assert converted(schedules.crontab(minute="*/5", day_of_week="mon-fri")).options["cron"] == "*/5 * * * mon-fri"
    assert converted(schedules.schedule(timedelta(seconds=7))).options["every"] == 7
