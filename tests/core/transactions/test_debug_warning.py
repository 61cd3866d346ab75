"""While DEBUG is on, a job that is sent in an open transaction is said once."""

import logging

import pytest
from django.db import transaction
from django.test import override_settings

from django_rtq.core import transactions
from tests.app.tasks import note, sleep

pytestmark = pytest.mark.usefixtures("transactional_db", "broker")


@pytest.fixture
def warnings(caplog, monkeypatch):
    monkeypatch.setattr(transactions, "_warned", set())
    with override_settings(DEBUG=True), caplog.at_level(logging.WARNING, "django_rtq"):
        yield lambda: [record.getMessage() for record in caplog.records]


def test_it_is_said_once_for_each_task(warnings):
    note.delay("a")
    assert warnings() == []
    with transaction.atomic():
        note.delay("a")
        note.delay_many([(("b",), {})])
        sleep.using(priority=1).delay("c", 1)

    first, second = warnings()
    assert first.startswith(
        "A job of tests.app.tasks.note was sent while a transaction of the database 'default' is open"
    )
    for cure in ("delay_on_commit()", 'RTQ["ENQUEUE_ON_COMMIT"]', "using(on_commit=False)"):
        assert cure in first
    assert "tests.app.tasks.sleep" in second


def test_other_databases_count(warnings, other):
    with transaction.atomic(using=other):
        note.delay("a")
    assert "'other'" in warnings()[0]


@pytest.mark.parametrize("rule", [False, True, "default"])
def test_it_is_not_said_when_the_setting_is_set(warnings, with_options, rule):
    with_options(ENQUEUE_ON_COMMIT=rule)
    with transaction.atomic():
        note.delay("a")
    assert warnings() == []


@pytest.mark.parametrize("rule", [False, True])
def test_it_is_not_said_when_it_is_meant(warnings, rule):
    with transaction.atomic():
        note.using(on_commit=rule).delay("a")
        note.delay_on_commit("b")
    assert warnings() == []


def test_our_own_jobs_are_meant(warnings):
    with transaction.atomic():
        pytest.importorskip("django_rtq.console.internal_tasks").run_bulk_action.delay({})
    assert warnings() == []


def test_nothing_is_said_in_production(warnings):
    with override_settings(DEBUG=False), transaction.atomic():
        note.delay("a")
    assert warnings() == []
