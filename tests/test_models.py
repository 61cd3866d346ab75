"""Schedules in the database: what is stored, what is refused, and what is written to Redis."""

import pytest
from django.core.exceptions import ValidationError
from django.test import override_settings

from django_rtq import every, task
from django_rtq.console.internal_tasks import run_bulk_action
from django_rtq.core.tasks import registry
from django_rtq.models import Schedule, sync_schedules
from tests.support.jobs import QUEUE
from tests.support.redis_server import UNREACHABLE

pytestmark = pytest.mark.django_db
TASK = f"{__name__}.report"


def report(number, *, full=False):
    """A function to be made a task."""


def other():
    """Another one."""


@pytest.fixture(autouse=True)
def _tasks(no_tasks):
    task(report)
    task(schedule=every(minutes=1, name="declared"))(other)


@pytest.fixture
def committed(django_capture_on_commit_callbacks):
    """A block at whose end the transaction is committed."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


def row(**options):
    return Schedule(**{"name": "nightly", "task": TASK, "args": [7], "cron": "0 5 * * *", **options})


# -- what is refused


@pytest.mark.parametrize(
    ("options", "field", "problem"),
    [
        ({"name": ""}, "name", "cannot be blank"),
        ({"name": "a" * 201}, "name", "at most 200 characters"),
        ({"name": "a\nb"}, "name", "printable characters"),
        ({"name": "declared"}, "name", "The code already declares a schedule with this name."),
        ({"task": "shop.tasks.nothing"}, "task", "No task 'shop.tasks.nothing' is registered here."),
        ({"task": f"{__name__}.reprt"}, "task", f"Did you mean {TASK}?"),
        ({"cron": ""}, "cron", "Enter either a cron expression or an interval in seconds"),
        ({"every": 5}, "every", "not both"),
        ({"cron": "* *"}, "cron", "has 2 fields, but needs five"),
        ({"cron": "0 0 31 2 *"}, "cron", "'0 0 31 2 *'"),
        ({"cron": "", "every": 0.01}, "every", "is not between 0.1 s and a year"),
        ({"tz": "Mars/Olympus"}, "tz", "is not a time zone"),
        ({"tz": "../etc/passwd"}, "tz", "is not a time zone"),
        ({"args": {"a": 1}}, "args", "has to be a list"),
        ({"kwargs": [1]}, "kwargs", "has to be a dictionary"),
        ({"args": []}, "args", "missing a required argument: 'number'"),
        ({"kwargs": {"color": 1}}, "args", "unexpected keyword argument 'color'"),
        ({"queue": "two words"}, "queue", "has to be 1 to 100 of the letters"),
        ({"client": "a\tb"}, "client", "printable"),
        ({"missed": "never"}, "missed", "is not a valid choice"),
        ({"cap": 0}, "cap", "greater than or equal to 1"),
        ({"cap": 1001}, "cap", "less than or equal to 1000"),
        ({"overlap": "maybe"}, "overlap", "is not a valid choice"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_field(options, field, problem):
    with pytest.raises(ValidationError) as caught:
        row(**options).save()

    assert list(caught.value.message_dict) == [field]
    assert problem in " ".join(caught.value.message_dict[field])
    assert not Schedule.objects.exists()


def test_what_was_left_empty_is_none_of_it(rtq_settings):
    made = row(args=[1], kwargs=None)
    made.save()

    assert Schedule.objects.get().kwargs == {}


# -- what Redis is told


def test_what_is_saved_is_in_the_plan_when_it_is_committed(broker, committed):
    with committed():
        row(queue="low", client="acme", tz="Europe/Berlin").save()
        assert broker.schedules.read().rows == {}

    (found,) = broker.schedules.read().rows.values()
    assert (found["task"], found["args"], found["cron"], found["tz"]) == (TASK, [7], "0 5 * * *", "Europe/Berlin")
    assert (found["queue"], found["client"], found["enabled"]) == ("low", "acme", True)


def test_what_is_renamed_or_deleted_goes_out(broker, committed):
    with committed():
        made = row()
        made.save()
    with committed():
        made.name = "weekly"
        made.save()
    assert list(broker.schedules.read().rows) == ["weekly"]

    with committed():
        Schedule.objects.all().delete()
    assert broker.schedules.read().rows == {}


def test_what_nobody_was_told_of_is_brought_by_the_next_who_mirrors(broker, committed):
    with committed():
        row().save()
        row(name="other").save()
    Schedule.objects.filter(name="other").update(cron="@daily")
    Schedule.objects.filter(name="nightly").delete()

    assert sync_schedules() == 2
    assert {name: found["cron"] for name, found in broker.schedules.read().rows.items()} == {"other": "@daily"}
    assert sync_schedules() == 0


def test_a_row_that_changes_while_it_is_mirrored_is_brought_as_it_is_then(broker, committed, monkeypatch):
    with committed():
        row().save()
    Schedule.objects.update(client="old")
    change = broker.schedules.update

    def change_late(*args, **options):
        Schedule.objects.update(client="new")
        change(*args, **options)

    monkeypatch.setattr(broker.schedules, "update", change_late)
    sync_schedules()

    assert broker.schedules.read().rows["nightly"]["client"] == "new"


def test_it_is_saved_although_redis_is_away_and_that_is_said(committed, caplog):
    with override_settings(RTQ={"REDIS": UNREACHABLE}), committed():
        row().save()

    assert Schedule.objects.count() == 1
    assert "schedules were saved but not copied to Redis" in caplog.text


def test_a_scheduler_of_its_queue_is_woken(redis, broker, committed):
    with committed():
        row(queue="low").save()

    assert redis.zrange("{rtq:low}:due_signal", 0, -1) == [b"due"]
    assert not redis.exists(f"{{rtq:{QUEUE}}}:due_signal")


# -- internal tasks


@pytest.fixture
def discarding():
    """The fields of a row that would discard all dead letters."""
    registry.register(run_bulk_action)
    return {"task": run_bulk_action.name, "args": [QUEUE, "discard", {}, 10**15], "cron": "", "every": 1}


def test_rows_of_internal_tasks_that_nobody_checked_do_not_reach_redis(broker, committed, discarding):
    with committed():
        row(name="sound").save()
    Schedule.objects.bulk_create([row(**discarding)])

    assert sync_schedules() == 0
    assert list(broker.schedules.read().rows) == ["sound"]


def test_a_row_of_an_internal_task_that_redis_has_goes_out(broker, discarding):
    made = row(**discarding)
    Schedule.objects.bulk_create([made])
    broker.schedules.update({made.name: made.as_row()})

    assert sync_schedules() == 1
    assert broker.schedules.read().rows == {}
