"""Jobs wait for the commit of the transaction that enqueues them, and are sent together then."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError

from django_rtq import signals, task
from django_rtq.exceptions import BrokerError, BrokerUnavailable, DuplicateJob, InvalidTask, JobNotFound
from tests.app.tasks import note
from tests.app.unique_tasks import keep_up
from tests.support.jobs import receiving

pytestmark = pytest.mark.usefixtures("transactional_db", "broker")


@task(unique=True)
def once(name):
    """A job of which one like it exists."""


def roll_back(call):
    with transaction.atomic():
        call()
        transaction.set_rollback(True)


# -- when jobs are sent


def test_a_job_is_sent_when_its_transaction_commits(names):
    with transaction.atomic():
        job = note.delay_on_commit("a")
        assert names() == []
        with pytest.raises(JobNotFound):
            job.refresh()

    assert names() == ["a"]
    assert job.state == "queued"


def test_without_a_transaction_it_is_sent_at_once(names):
    assert note.delay_on_commit("a").state == "queued"
    assert names() == ["a"]


@pytest.mark.parametrize("durable", [False, True])
def test_the_outermost_block_commits(names, durable):
    with transaction.atomic(durable=durable):
        with transaction.atomic():
            note.delay_on_commit("a")
        with transaction.atomic(savepoint=False):
            note.delay_on_commit("b")
        assert names() == []
    assert names() == ["a", "b"]


def test_a_rollback_to_a_savepoint_drops_exactly_the_jobs_since(names):
    with transaction.atomic():
        note.delay_on_commit("before")
        roll_back(lambda: note.delay_on_commit("within"))
        note.delay_on_commit("after")
        roll_back(lambda: note.using(on_commit=False).delay("at once"))
    assert names() == ["at once", "before", "after"]


def test_without_autocommit_django_refuses(names):
    connections["default"].ensure_connection()
    transaction.set_autocommit(False)
    try:
        with pytest.raises(TransactionManagementError):
            note.delay_on_commit("a")
        note.delay("b")
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert names() == ["b"]


# -- which database


def test_a_job_waits_for_the_database_that_it_names(names, other):
    with transaction.atomic(using=other):
        with transaction.atomic():
            note.using(on_commit=other).delay("other")
            note.using(on_commit=other).delay_on_commit("other, too")
            note.using(on_commit=True).delay("default")
        assert names() == ["default"]
        note.delay_on_commit("its database has no transaction")
    assert names() == ["default", "its database has no transaction", "other", "other, too"]


def test_a_rollback_of_another_database_changes_nothing(names, other):
    with transaction.atomic(using=other):
        note.using(on_commit=other).delay("a")
        with transaction.atomic():
            note.delay_on_commit("b")
        transaction.set_rollback(True, using=other)
    assert names() == ["b"]


def test_no_connection_is_opened_for_it(names, other):
    connections[other].close()
    note.using(on_commit=other).delay("a")
    assert connections[other].connection is None


# -- the setting and the option


@pytest.mark.parametrize("rule", [True, "default"])
def test_the_setting_is_for_every_way_to_enqueue(names, with_options, rule, readers):
    with_options(ENQUEUE_ON_COMMIT=rule)
    with transaction.atomic():
        note.delay("a")
        note.delay_many([(("b",), {}), (("c",), {})])
        note.using(run_after=60).delay("later")
        once.delay("d")
        note.using(on_commit=False).delay("at once")
        assert names() == ["at once"]
        assert readers.search([("default", "scheduled")]).page().jobs == []
    assert names() == ["at once", "a", "b", "c", "d"]
    assert len(readers.search([("default", "scheduled")]).page().jobs) == 1


def test_the_setting_may_name_a_database(names, with_options, other):
    with_options(ENQUEUE_ON_COMMIT=other)
    with transaction.atomic(using=other):
        note.delay("a")
        note.delay_on_commit("b")
        assert names() == []
    assert names() == ["a", "b"]


def test_a_task_may_be_declared_so(names):
    with transaction.atomic():
        task(on_commit=True)(_declared).delay("a")
        assert names() == []
    assert names() == ["a"]


def _declared(name):
    """A function to declare."""


@pytest.mark.parametrize("value", ["nowhere", 1, ""])
def test_an_unknown_database_is_refused(value):
    with pytest.raises(InvalidTask, match=f"on_commit is {value!r}, but has to be True, False, or the alias"):
        note.using(on_commit=value)


@pytest.mark.parametrize("call", ["adelay", "adelay_on_commit"])
def test_async_code_has_its_transaction_in_the_thread_of_django(names, call):
    seen = []

    async def act():
        block = transaction.atomic()
        await sync_to_async(block.__enter__)()
        await getattr(note.using(on_commit=True), call)("a")
        seen.append(await sync_to_async(names)())
        await sync_to_async(block.__exit__)(None, None, None)

    asyncio.run(act())

    assert seen == [[]]
    assert names() == ["a"]


# -- answers


def test_the_handle_of_a_unique_job_is_corrected_after_the_commit():
    first = once.delay("a")
    with transaction.atomic():
        second, third = once.delay_on_commit("a"), once.delay_on_commit("b")
        fourth = once.delay_on_commit("b")
        assert second.id != first.id
        assert not second.duplicate

    assert (second.id, second.duplicate) == (first.id, True)
    assert not third.duplicate
    assert (fourth.id, fourth.duplicate) == (third.id, True)


def test_a_duplicate_cannot_raise_after_the_commit():
    first = once.delay("a")
    strict = once.using(unique_on_conflict="raise")
    with pytest.raises(DuplicateJob):
        strict.delay("a")
    with transaction.atomic():
        job = strict.delay_on_commit("a")
    assert (job.id, job.duplicate) == (first.id, True)


def test_a_job_to_run_again_is_accepted(names):
    with transaction.atomic():
        first = keep_up.delay_on_commit("a", 1)
        keep_up.delay_on_commit("a", 2)
    assert first.state == "queued"


def test_the_signal_comes_with_the_job():
    told = []
    once.delay("duplicate")

    with (
        receiving(lambda job_ids, queue, task, **_: told.append((job_ids, queue, task)), signals.job_enqueued),
        transaction.atomic(),
    ):
        job = note.delay_on_commit("a")
        once.delay_on_commit("duplicate")
        assert told == []
    assert told == [([job.id], "default", note.name)]


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
