"""Invalid schedules are rejected where they are declared."""

from datetime import datetime

import pytest

from django_rtq import cron, every, task
from django_rtq.core.schedules import schedule_from_settings
from django_rtq.exceptions import InvalidTask


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: cron("0 5 * *"), "cron: '0 5 * *' has 4 fields, but needs five: minute, hour, day, month, weekday."),
        (lambda: cron("0 5 * * * * *"), "cron: '0 5 * * * * *' has 7 fields"),
        (lambda: cron("60 0 5 * * *"), "cron: '60 0 5 * * *' is invalid"),
        (lambda: every(minutes=1, start="10"), "every: start is '10', but has to be seconds, a timedelta or an aware"),
        (lambda: every(minutes=1, start=datetime(2026, 1, 1)), "every: start is datetime.datetime"),
        (lambda: every(minutes=1, start=True), "every: start is True"),
        (lambda: schedule_from_settings("a", {"cron": "* * * * *", "start": 5}), '"start" belongs to "every"'),
        (lambda: cron("60 5 * * *"), "cron: '60 5 * * *' is invalid: Bad minute."),
        (lambda: cron("0 5 * * moo"), "Bad day-of-week"),
        (lambda: cron("*/0 * * * *"), "Bad minute"),
        (lambda: cron("0 0 30 2 *"), "Bad day-of-month"),
        (lambda: cron("0 0 * 2 mon#5", tz="UTC") and cron("0 0 30 2 mon#6"), "Bad"),
        (lambda: cron("@reboot"), "'@reboot' has 1 fields"),
        (lambda: cron(None), "cron: the expression is None, but has to be text of at most 200 characters."),
        (lambda: cron("*" * 201), "at most 200 characters"),
        (lambda: cron("0 5 * * *", tz="Mars/Base"), "cron: 'Mars/Base' is not a time zone."),
        (lambda: cron("0 5 * * *", tz="../etc"), "is not a time zone"),
        (lambda: cron("0 5 * * *", tz=3), "cron: 3 is not a time zone"),
        (lambda: cron("0 5 * * *", seconds=3), "cron: unknown option 'seconds'. It takes: tz, name, args"),
        (lambda: cron("0 5 * * *", missed="never"), """missed is 'never', but has to be "skip", "once" or "all"."""),
        (lambda: every(seconds=1, overlap="no"), """overlap is 'no', but has to be "allow" or "skip"."""),
        (lambda: every(seconds=1, name="a\nb"), r"name is 'a\\nb', but has to be text of at most 200 printable"),
        (lambda: every(seconds=1, name="x" * 201), "at most 200 printable characters"),
        (lambda: every(seconds=1, args="abc"), "args is 'abc', but has to be a list"),
        (lambda: every(seconds=1, kwargs={1: 2}), r"kwargs is \{1: 2\}, but has to be a dictionary"),
        (
            lambda: every(seconds=1, tz="UTC"),
            "every: unknown option 'tz'. It takes: seconds, minutes, hours, days, start, name",
        ),
        (every, "every: 0 s is not between 0.1 s and a year."),
        (lambda: every(seconds=0.09), "not between"),
        (lambda: every(days=367), "not between"),
        (lambda: every(seconds=float("nan")), "every: this is not a duration"),
        (lambda: every(seconds=float("inf")), "every: this is not a duration"),
        (lambda: every(seconds="5"), "every: this is not a duration"),
        (lambda: every(seconds=True), "every: this is not a duration: True is no number."),
        (lambda: schedule_from_settings("x", {"every": True}), "True is no number"),
        (lambda: schedule_from_settings("x", {"cron": "* * * * *", "every": 5}), 'exactly one of "cron" and "every"'),
        (lambda: schedule_from_settings("x", {}), 'exactly one of "cron" and "every"'),
        (lambda: schedule_from_settings("x", {"every": 5, "name": "y"}), "is not an option here"),
        (lambda: schedule_from_settings("x", {"every": 5, "tz": "UTC"}), "unknown option 'tz'"),
    ],
)
def test_what_makes_no_sense_is_refused(make, problem):
    with pytest.raises(InvalidTask, match=problem.replace("*", r"\*").replace("(", r"\(").replace("?", r"\?")):
        make()


# -- the option of a task


def report(month, *, copies=1):
    """A function to be made a task."""


NAME = f"{__name__}.report"


@pytest.fixture
def declare(monkeypatch):
    monkeypatch.setattr("django_rtq.core.tasks.registry._tasks", {})
    return lambda schedule: task(schedule=schedule)(report)


def test_schedules_of_a_task_have_names(declare):
    one, two = every(minutes=1, args=[1]), every(minutes=2, args=[2])

    assert [s.name for s in declare(one).schedule] == [NAME]
    assert [s.name for s in declare([one, two]).schedule] == [NAME, f"{NAME}#2"]
    assert [s.name for s in declare([every(minutes=1, args=[1], name="mine"), two]).schedule] == ["mine", f"{NAME}#2"]
    assert declare(()).schedule == ()


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("0 5 * * *", r"schedule is '0 5 \* \* \*', but has to be cron\(…\) or every\(…\), or a list of them."),
        (every(minutes=1), "the arguments of its schedule are invalid: .*missing a required argument: 'month'"),
        (every(minutes=1, args=[1], kwargs={"color": 1}), "unexpected keyword argument 'color'"),
        (every(minutes=1, args=[{1, 2}]), "the arguments of its schedule are invalid"),
    ],
)
def test_a_schedule_that_does_not_fit_its_task_is_refused(declare, schedule, problem):
    with pytest.raises(InvalidTask, match=problem):
        declare(schedule)
