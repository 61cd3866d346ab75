"""All jobs of a transaction are sent together, and what happens when that fails."""

import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction

from django_rtq import signals
from django_rtq.exceptions import BrokerError, BrokerUnavailable
from tests.app.tasks import note
from tests.core.transactions.test_on_commit import once, roll_back
from tests.support.receivers import receiving

pytestmark = pytest.mark.usefixtures("transactional_db", "broker")


# -- round trips


def test_all_jobs_of_a_transaction_are_sent_in_one_round_trip(names, round_trips):
    note.using(queue_name="mail").delay("known queue")
    note.delay("known queue")
    round_trips.clear()
    with transaction.atomic():
        for number in range(3):
            note.delay_on_commit(number)
            note.using(queue_name="mail").delay_on_commit(number)
            once.delay_on_commit(number)
            transaction.on_commit(lambda: None)
            with transaction.atomic():
                note.using(priority=1).delay_many([((number,), {})])
        roll_back(lambda: note.delay_on_commit("never"))
        note.using(on_commit=True).delay_many([(("x",), {}), (("y",), {})])
        assert len(round_trips) == 3  # delay_many() did not wait
        round_trips.clear()

    assert len(round_trips) == 1
    assert names("mail") == ["known queue", 0, 1, 2]
    assert sorted(names(), key=str)[:6] == [0, 0, 0, 1, 1, 1]
    assert names()[-2:] == ["x", "y"]


def test_a_rollback_to_a_savepoint_at_the_end_costs_round_trips_and_no_job(names, round_trips):
    note.delay("known queue")
    round_trips.clear()
    with transaction.atomic():
        note.delay_on_commit("a")
        note.delay_on_commit("b")
        roll_back(lambda: note.delay_on_commit("never"))

    assert names() == ["known queue", "a", "b"]
    assert len(round_trips) <= 4  # two of them are those of names()


def test_thousands_of_jobs(names, round_trips):
    note.delay("known queue")
    round_trips.clear()
    with transaction.atomic():
        for number in range(1200):
            note.using(on_commit=True).delay_many([((f"{number}-{i}",), {}) for i in range(5)])
    assert len(round_trips) == 2
    round_trips.clear()


def test_a_callback_that_fails_takes_no_jobs_with_it_that_come_later(names):
    """Django drops what is registered behind it. Jobs that were enqueued before and behind it are sent before it."""

    def fail():
        raise ZeroDivisionError

    def act():
        with transaction.atomic():
            note.delay_on_commit("a")
            transaction.on_commit(fail)
            note.delay_on_commit("b")

    with pytest.raises(ZeroDivisionError):
        act()
    assert names() == ["a", "b"]


def test_a_callback_may_begin_a_transaction_of_its_own(names):
    def act():
        with transaction.atomic():
            note.delay_on_commit("inner")
            assert names() == []

    with transaction.atomic():
        transaction.on_commit(act)
        note.delay_on_commit("outer")
    assert names() == ["inner", "outer"]


def test_callbacks_that_a_test_calls_itself_send_their_own_jobs_only(names):
    with transaction.atomic():
        note.delay_on_commit("a")
        note.delay_on_commit("b")
        callback = connections["default"].run_on_commit[0][1]
        callback()
        assert names() == ["a"]
        transaction.set_rollback(True)
    assert names() == ["a"]


# -- Redis is away


def test_the_commit_stands_when_redis_cannot_be_reached(names, redis, with_options):
    note.delay("known queue")
    with_options(REDIS="redis://127.0.0.1:1/0")

    def act():
        with transaction.atomic():
            User.objects.create(username="a")
            note.delay_on_commit("a")

    with pytest.raises(BrokerUnavailable):
        act()
    assert User.objects.exists()


def test_jobs_that_redis_refuses_raise_and_the_others_are_sent(names, redis):
    note.delay("known queue")
    told = []
    redis.answer_once(b"-ERR no\r\n")
    with (
        receiving(lambda job_ids, **_: told.extend(job_ids), signals.job_enqueued),
        pytest.raises(BrokerError, match="no"),
        transaction.atomic(),
    ):
        note.delay_on_commit("a")
    assert told == []
    assert names() == ["known queue"]
