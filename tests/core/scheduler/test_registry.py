"""Schedules declared in code and in settings, and which are refused."""

import pytest
from django.test import override_settings

from django_rtq import Task, cron, every, task
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.checks import check_declarations
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.job import is_member
from django_rtq.core.scheduler.registry import declared_schedules
from django_rtq.core.tasks import registry
from django_rtq.exceptions import ConfigurationError
from tests.support.redis_server import UNREACHABLE

pytestmark = pytest.mark.usefixtures("no_tasks")


def report(*args, **kwargs):
    """A function to be made a task."""


def declare(*schedules):
    return task(schedule=schedules)(report)


def test_settings_declare_schedules_too():
    declare(cron("0 5 * * *", name="b", args=[1]))
    options = {"task": f"{__name__}.report", "every": 90, "args": [7], "kwargs": {"x": 1}, "overlap": "skip"}
    entries = declared_schedules(Config(schedules={"a": options}))

    assert [entry.name for entry in entries] == ["a", "b"]
    schedule = entries[0].schedule
    assert (schedule.every_ms, schedule.args, schedule.kwargs, schedule.overlap) == (90_000, [7], {"x": 1}, "skip")


def test_no_name_makes_ids_like_those_of_members_of_workflows():
    declare(*(every(seconds=5, name=f"report {number}") for number in range(100)))
    ids = [entry.job_id(1_700_000_000_000) for entry in declared_schedules(Config())]

    assert len(set(ids)) == 100
    assert not any(map(is_member, ids))
    assert all(job_id.startswith(f"{1_700_000_000_000:012x}") and len(job_id) == 32 for job_id in ids)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"every": 5}, '"task" is required'),
        ({"task": f"{__name__}.reprt", "every": 5}, f"Did you mean {__name__}.report?"),
        ({"task": f"{__name__}.report"}, 'exactly one of "cron" and "every"'),
        ({"task": f"{__name__}.report", "cron": "* *"}, "has 2 fields"),
        ({"task": f"{__name__}.report", "every": 5, "color": "red"}, "unknown option 'color'"),
        ({"task": f"{__name__}.report", "every": 5, "args": [{1}]}, "the arguments of its schedule are invalid"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, problem):
    declare()
    with pytest.raises(ConfigurationError) as caught:
        declared_schedules(Config(schedules={"a": options}))

    assert str(caught.value).startswith("RTQ[\"SCHEDULES\"]['a']: ")
    assert problem in str(caught.value)
    with override_settings(RTQ={"REDIS": UNREACHABLE, "SCHEDULES": {"a": options}}):
        assert [(error.id, error.msg) for error in check_declarations()] == [("rtq.E002", str(caught.value))]


def test_an_internal_task_is_known_by_its_name():
    """As in a process that has not loaded it yet."""
    assert registry.is_internal("django_rtq.internal_tasks.delete_committed_jobs")
    assert not registry.is_internal("django_rtq.tasks.internal_tasks")


def test_settings_do_not_schedule_internal_tasks():
    registry.register(Task(func=report, name="inner", internal=True))
    options = {"task": "inner", "every": 5, "args": ["mail", "discard", {}, 10**15]}

    with override_settings(RTQ={"REDIS": UNREACHABLE, "SCHEDULES": {"a": options}}):
        (error,) = check_declarations()
    assert (error.id, "is internal to django_rtq" in error.msg) == ("rtq.E002", True)


def test_two_of_one_name_are_refused():
    declare(every(minutes=1, name="a"), every(minutes=2, name="a"))

    with pytest.raises(ConfigurationError, match="Two schedules have the name 'a'"):
        declared_schedules(Config())


@override_settings(RTQ={"REDIS": UNREACHABLE})
def test_the_check_finds_nothing_wrong_with_what_is_right():
    declare(every(minutes=1))
    assert check_declarations() == []


@pytest.mark.parametrize("value", [["a"], {"a": "b"}, {1: {}}, {"": {}}, "x"])
def test_schedules_of_another_shape_are_refused(value):
    with override_settings(RTQ={"REDIS": UNREACHABLE, "SCHEDULES": value}):
        assert check_declarations() == []  # another check says so
        with pytest.raises(ConfigurationError, match="has to be a dictionary of names and options"):
            get_broker()
