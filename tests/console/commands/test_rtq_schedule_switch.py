"""rtq_schedule enable, disable and sync: of what is declared, and of rows in the database."""

import pytest
from django.db import DatabaseError
from django.test import override_settings

from django_rtq import every, task
from django_rtq.console.internal_tasks import run_bulk_action
from django_rtq.core.tasks import registry
from django_rtq.models import Schedule, copy_schedules
from tests.support.claims import take, take_all
from tests.support.commands import run
from tests.support.jobs import QUEUE
from tests.support.redis_server import UNREACHABLE

TASK = f"{__name__}.report"


def report(number=0):
    """A function to be made a task."""


@pytest.fixture(autouse=True)
def _schedules(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {})
    task(schedule=every(seconds=30, name="declared"))(report)


@pytest.fixture
def nightly(transactional_db, broker):
    row = Schedule(name="nightly", task=TASK, args=[7], cron="0 5 * * *", queue="low")
    row.save()
    return row


def shown(name):
    """What the list tells of one."""
    return next(line for line in run("rtq_schedule", "list", "--json").json if line["name"] == name)


def test_what_is_declared_is_switched_for_all(redis, broker):
    assert run("rtq_schedule", "disable", "declared").out == "declared is disabled.\n"
    assert run("rtq_schedule", "disable", "declared").out == "declared is disabled already.\n"
    assert (shown("declared")["enabled"], shown("declared")["next_slot"]) == (False, None)
    assert "  no       code  " in run("rtq_schedule", "list").out

    answer = run("rtq_schedule", "enable", "declared", "--json").json

    assert answer == {"name": "declared", "enabled": True, "changed": True}
    assert shown("declared")["enabled"]
    assert redis.exists(f"{{rtq:{QUEUE}}}:due_signal")


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


def test_a_row_whose_task_is_gone_is_told_and_can_be_switched_off(broker, nightly, monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {})

    assert "No task" in run("rtq_schedule", "list").out
    assert "No task" in shown("nightly")["problem"]
    assert run("rtq_schedule", "run", "nightly").code == 1
    assert run("rtq_schedule", "disable", "nightly").out == "nightly is disabled.\n"
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


@pytest.mark.parametrize("action", [["sync"], ["disable", "nightly"]])
def test_a_database_that_is_away_is_told(broker, nightly, monkeypatch, action):
    def refuse(*args, **options):
        raise DatabaseError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr("django.db.models.query.QuerySet._fetch_all", refuse)
        ran = run("rtq_schedule", *action)

    assert (ran.code, ran.error) == (1, "The database did not answer: no answer")


# -- what workers and schedulers do at their start


def test_whoever_starts_a_scheduler_brings_the_rows(redis, broker, nightly):
    redis.delete("rtq:plan")
    Schedule.objects.update(cron="@daily")

    copy_schedules()

    assert broker.schedules.read().rows["nightly"]["cron"] == "@daily"


def test_it_starts_without_a_database_too(broker, nightly, monkeypatch, caplog):
    def refuse(*args, **options):
        raise DatabaseError("no such table")

    with monkeypatch.context() as patch, caplog.at_level("INFO", "django_rtq"):
        patch.setattr("django.db.models.query.QuerySet._fetch_all", refuse)
        copy_schedules()

    assert (
        "could not copy the schedules from the database to Redis: no such table. Run: manage.py migrate" in caplog.text
    )
    assert list(broker.schedules.read().rows) == ["nightly"]


def test_the_list_names_a_missing_table(broker, monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {})

    def refuse(*args, **options):
        raise DatabaseError("no such table: django_rtq_schedule")

    monkeypatch.setattr("django.db.models.query.QuerySet.exists", refuse)
    ran = run("rtq_schedule", "list")

    first, second = ran.out.splitlines()
    assert first.startswith("There are no schedules")
    assert second == (
        "Those of the admin cannot be read: no such table: django_rtq_schedule. Run: manage.py migrate django_rtq"
    )


@pytest.mark.django_db
def test_it_starts_without_redis_too(caplog):
    with override_settings(RTQ={"REDIS": UNREACHABLE}), caplog.at_level("INFO", "django_rtq"):
        copy_schedules()

    assert "could not copy the schedules" in caplog.text


def test_a_row_that_cannot_work_is_not_switched_on(broker, nightly, monkeypatch):
    nightly.switch(on=False)
    monkeypatch.setattr(registry, "_tasks", {})

    for options in ([], ["--dry-run"]):
        ran = run("rtq_schedule", "enable", "nightly", *options)
        assert (ran.code, ran.error.startswith("nightly is invalid: No task")) == (1, True)

    assert not Schedule.objects.get().enabled


def test_a_row_of_an_internal_task_is_not_started_by_hand(broker, nightly):
    registry.register(run_bulk_action)
    args = [QUEUE, "discard", {}, 10**15]
    broker.schedules.update({"nightly": {**nightly.as_row(), "task": run_bulk_action.name, "args": args}})

    ran = run("rtq_schedule", "run", "nightly")

    assert (ran.code, "is internal to django_rtq" in ran.error) == (1, True)
    assert take_all(broker) == []
