"""The outbox: jobs are rows of the transaction, and in Redis right after its commit."""

import itertools
import logging
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_rtq import signals, task
from django_rtq.core.broker import enqueue_calls
from django_rtq.core.broker.redis import commands
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import name_of
from django_rtq.core.conf.config import read_config
from django_rtq.core.jobs.job import made_ms
from django_rtq.databases import outbox
from django_rtq.exceptions import BrokerUnavailable, ConfigurationError
from django_rtq.models import OutboxJob
from tests.app.tasks import note
from tests.support.jobs import receiving

UNREACHABLE = "redis://127.0.0.1:1/0"


@task(unique=True, unique_on_conflict="raise")
def once(name):
    """A job of which one like it exists."""


@pytest.fixture(autouse=True)
def outbox_options(database, broker, with_options):
    """Switches the outbox on, with more options for some tests."""
    with_options(OUTBOX=True)
    return lambda **options: with_options(OUTBOX=True, **options)


def queries_of(call):
    """The statements of a call, by their first word."""
    with CaptureQueriesContext(connection) as queries:
        call()
    return [query["sql"].split(" ")[0] for query in queries.captured_queries]


def commit(*names):
    """A transaction with these jobs."""
    with transaction.atomic():
        return [note.delay(name) for name in names]


def test_jobs_are_rows_until_the_commit_and_in_redis_right_after(names):
    with transaction.atomic():
        job = note.delay("a")
        row = OutboxJob.objects.get()
        assert (row.job_id, row.queue, row.task) == (job.id, "default", note.name)
        assert names() == []
    assert names() == ["a"]
    assert job.state == "queued"
    assert not OutboxJob.objects.exists()


def test_a_rollback_leaves_neither(names):
    with transaction.atomic():
        note.delay("a")
        transaction.set_rollback(True)
    assert names() == []
    assert not OutboxJob.objects.exists()


def test_it_costs_one_insert_for_each_call_and_one_delete(names, round_trips):
    commit("warm")
    round_trips.clear()

    def act():
        with transaction.atomic():
            note.delay("a")
            note.using(queue_name="default").delay_many([(("b",), {}), (("c",), {})])

    found = queries_of(act)

    assert [word for word in found if word in ("INSERT", "DELETE", "SELECT", "UPDATE")] == [
        "INSERT",
        "INSERT",
        "DELETE",
    ]
    assert not [word for word in found if word in ("SAVEPOINT", "RELEASE")]
    assert len(round_trips) == 1
    assert names()[-3:] == ["a", "b", "c"]


def test_without_a_transaction_there_is_no_row(names):
    assert queries_of(lambda: note.delay("a")) == []
    assert names() == ["a"]


# -- Redis is away


@pytest.mark.parametrize("block", [transaction.atomic, nullcontext])
def test_the_request_succeeds_when_redis_is_away_at_the_commit_or_without_one(outbox_options, caplog, block):
    outbox_options(REDIS=UNREACHABLE)
    with block():
        jobs = [note.delay("a"), once.delay("b")]
    assert [row.pk for row in OutboxJob.objects.order_by("due_at")] == [job.id for job in jobs]
    assert "they wait in the outbox" in caplog.text
    assert len(caplog.records) == 1


@pytest.mark.parametrize("send", [commit, lambda *names: [note.delay(name) for name in names]])
def test_an_outage_is_told_when_it_begins_and_when_it_ends(redis, names, caplog, send):
    caplog.set_level(logging.INFO, "django_rtq")

    def told():
        found = [(record.levelname, record.getMessage().partition(":")[0]) for record in caplog.records]
        caplog.clear()
        return [(level, text.partition("; ")[2] or text) for level, text in found]

    send("known queue")
    for _ in range(2):
        with redis.full_memory():
            for name in "abc":
                send(name)
        assert told() == [("WARNING", "they wait in the outbox, as the next ones do")]
        waiting = OutboxJob.objects.count()
        send("d")
        send("e")
        assert told() == [("INFO", f"Redis accepts jobs again, and {waiting} job(s) wait in the outbox for a relay")]
    assert waiting == 6


def test_not_in_a_transaction_that_may_roll_back(outbox_options):
    outbox_options(REDIS=UNREACHABLE)
    with transaction.atomic(), pytest.raises(BrokerUnavailable):
        note.using(on_commit=False).delay("a")
    assert not OutboxJob.objects.exists()


def test_rows_of_jobs_that_waited_for_room_have_ids_that_redis_may_have(outbox_options, rtq, monkeypatch):
    """Or else they would run twice: more jobs than one round trip takes get new ids."""
    limit, exchange, trips = rtq.queues["default"].limit, RedisClient._exchange, itertools.count()

    def lose_third(self, commands, **options):
        replies = exchange(self, commands, **options)
        if name_of(commands[0]) == "EVALSHA enqueue_many" and next(trips) == 2:  # the first one that is sent again
            raise BrokerUnavailable("lost")
        return replies

    monkeypatch.setattr(enqueue_calls, "CALLS_IN_FLIGHT", 1)
    outbox_options(QUEUES={"default": {"on_full": "wait"}})
    limit(max_waiting=0)
    monkeypatch.setattr(commands, "time", SimpleNamespace(sleep=lambda _: limit(max_waiting=9999)))
    monkeypatch.setattr(RedisClient, "_exchange", lose_third)
    note.delay_many([((number,), {}) for number in range(501)])

    stored = {job.id for job in rtq.jobs.filter(queue="default")}
    assert len(stored) == 500
    assert stored < set(OutboxJob.objects.values_list("job_id", flat=True))


def test_a_row_that_cannot_be_deleted_fails_no_request(monkeypatch, names, caplog):
    monkeypatch.setattr(outbox, "delete", Mock(side_effect=DatabaseError("gone")))
    commit("a")
    assert names() == ["a"]
    assert "could not be deleted from the outbox" in caplog.text


def test_the_signal_comes_with_redis(outbox_options):
    told = []
    with receiving(lambda job_ids, **_: told.extend(job_ids), signals.job_enqueued):
        (job,) = commit("a")
        outbox_options(REDIS=UNREACHABLE)
        commit("b")
    assert told == [job.id]


def test_what_waits_for_the_commit_is_told_though_redis_is_away(outbox_options):
    outbox_options(REDIS=UNREACHABLE)
    told = []
    with transaction.atomic():
        note.delay("a").when_sent.append(lambda: told.append(1))
        assert told == []
    assert told == [1]


# -- times count from the call


@pytest.mark.parametrize(
    ("options", "due", "expires"),
    [
        ({}, "", ""),
        ({"run_after": 60.0}, 60_000, ""),
        ({"expires": 5.0}, "", 5_000),
        ({"run_after": 60.0, "expires": 5.0}, 60_000, 65_000),
    ],
)
def test_delays_count_from_the_call(options, due, expires):
    job = note.using(**options)
    with transaction.atomic():
        handle = job.delay("a")
        (stored,) = outbox.read_call("default", OutboxJob.objects.get().job).jobs
        transaction.set_rollback(True)
    made = made_ms(handle.id)
    assert stored.due == (str(made + due) if due else "")
    assert stored.expires == (str(made + expires) if expires else "")


# -- the settings


@pytest.mark.parametrize("rule", [True, "default"])
def test_it_decides_when_jobs_are_sent(rule, with_options):
    with_options(ENQUEUE_ON_COMMIT=rule)
    with transaction.atomic():
        note.delay("a")
        assert OutboxJob.objects.exists()


def test_it_excludes_another_rule():
    for rule in (False, "other"):
        options = {"REDIS": UNREACHABLE, "OUTBOX": True, "ENQUEUE_ON_COMMIT": rule}
        with pytest.raises(ConfigurationError, match="ENQUEUE_ON_COMMIT"):
            read_config(options, debug=False)


# -- the lag


def test_the_lag(outbox_options):
    empty = outbox.outbox_lag("")
    assert (empty.jobs, empty.oldest_seconds, empty.error) == (0, 0.0, "")
    outbox_options(REDIS=UNREACHABLE)
    commit("a", "b")
    OutboxJob.objects.create(
        pk=f"{made_ms('0' * 12):012x}old", queue="default", task="t", job="", due_at="2026-01-01T00:00Z"
    )
    lag = outbox.outbox_lag("")
    assert lag.jobs == 3
    assert lag.oldest_seconds > 1e9


def test_no_lag_without_an_outbox(with_options):
    with_options(OUTBOX=False)
    assert outbox.outbox_lag("") is None


def test_a_missing_table_is_said():
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE django_rtq_outboxjob")
    lag = outbox.outbox_lag("")
    assert "django_rtq_outboxjob" in lag.error
    assert lag.error.endswith(". Run: manage.py migrate django_rtq")


@pytest.mark.parametrize("calls", [1, 2])
def test_delay_says_what_makes_the_missing_table(database, calls):
    database.query("DROP TABLE django_rtq_outboxjob")
    advice = r"django_rtq_outboxjob[\s\S]*\. Run: manage\.py migrate django_rtq$"
    with pytest.raises(DatabaseError, match=advice), transaction.atomic():
        note.delay_many([(["a"], {})] * calls)


def test_the_insertion_names_all_columns():
    assert {field.column for field in OutboxJob._meta.concrete_fields} == {*outbox.OutboxRow._fields}
