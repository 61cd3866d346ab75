"""Jobs of one transaction that go to two Redis servers."""

import pytest
from django.conf import settings
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from django_rtq import BrokerUnavailable
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import get_broker
from django_rtq.databases.outbox import outbox_lag
from django_rtq.databases.relay import relay
from django_rtq.models import OutboxJob
from tests.app import django_tasks as tasks
from tests.app import tasks as own_tasks
from tests.backend.own_redis import reports_in

UNREACHABLE = "redis://127.0.0.1:1/0"


@pytest.fixture
def with_outbox(transactional_db, other):
    """The outbox is on."""
    with override_settings(RTQ={**settings.RTQ, "OUTBOX": True}):
        yield
        get_broker().close()
        get_broker("reports").close()


def names(backend):
    """The arguments of the jobs that are queued."""
    found = readers_of(backend).search([("default", "queued")]).page().jobs
    return [job.args[0] for job in found]


def enqueue(*where):
    """Jobs of one transaction, by their backends."""
    with transaction.atomic():
        return [
            tasks.add.using(backend=backend, on_commit=True).enqueue(f"{backend} {number}")
            for number, backend in enumerate(where)
        ]


def test_they_are_sent_in_one_round_trip_to_each(transactional_db, other, round_trips):
    enqueue("default", "reports")
    round_trips.clear()

    results = enqueue("reports", "default", "reports", "default")

    assert len(round_trips) == 2
    assert names("")[1:] == ["default 1", "default 3"]
    assert names("reports")[1:] == ["reports 0", "reports 2"]
    for result in results:
        result.refresh()


def test_one_server_is_down(transactional_db, broker, told):
    with reports_in(REDIS=UNREACHABLE), pytest.raises(BrokerUnavailable):
        enqueue("reports", "default")

    assert names("") == ["default 1"]
    assert [result.args for _, _, result in told] == [["default 1"]]


def test_rows_of_the_outbox_know_where_they_belong(with_outbox, other):
    with transaction.atomic():
        tasks.add.using(backend="reports").enqueue("there")
        own_tasks.note.delay("here")
        assert {row.backend for row in OutboxJob.objects.all()} == {"", "reports"}
    assert (names(""), names("reports")) == (["here"], ["there"])
    assert not OutboxJob.objects.exists()


def test_each_relay_sends_the_rows_of_its_redis(with_outbox, other_server):
    with reports_in(REDIS=UNREACHABLE):
        job = tasks.add.using(backend="reports").delay("at once")
        result, _ = enqueue("reports", "default")
        OutboxJob.objects.update(due_at=timezone.now())
        assert outbox_lag("").jobs == 0
        assert relay(get_broker(), "default") == 0
        with pytest.raises(BrokerUnavailable):
            relay(get_broker("reports"), "default")
    assert OutboxJob.objects.count() == 2

    with reports_in(REDIS=other_server.url):
        assert relay(get_broker("reports"), "default") == 2
        assert (names(""), names("reports")) == (["default 1"], ["at once", "reports 0"])
        assert job.state == "queued"
        result.refresh()
    assert not OutboxJob.objects.exists()


def test_rows_of_a_backend_that_is_gone_are_kept_and_told(with_outbox, caplog):
    with reports_in(REDIS=UNREACHABLE):
        enqueue("reports")
    OutboxJob.objects.update(due_at=timezone.now(), backend="gone")

    assert relay(get_broker(), "default") == 1
    assert "TASKS has no backend 'gone'" in OutboxJob.objects.get().error
    assert "stays in the outbox" in caplog.text
