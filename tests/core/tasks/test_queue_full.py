"""What delay() and its kin do when a queue takes no more jobs in (max_waiting): raise QueueFull, or wait for room."""

import asyncio
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.db import transaction
from django.test import override_settings

from django_rtq import QueueFull, task
from django_rtq.core.broker import enqueue_calls
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.redis import commands
from django_rtq.core.tasks import enqueuing
from django_rtq.signals import job_enqueued
from tests.support.apps import captured
from tests.support.jobs import QUEUE, claim, claim_all, receiving


@task(client=lambda number: f"c{number}")
def add(number):
    return number


@task
def plain(number):
    return number


@task(unique=True)
def once(number):
    return number


@pytest.fixture
def announced():
    ids = []
    with receiving(lambda job_ids, **_: ids.extend(job_ids), job_enqueued):
        yield ids


def calls(*numbers):
    return [((number,), {}) for number in numbers]


def delay_many(work, is_async, *numbers, **options):
    if is_async:
        return asyncio.run(work.adelay_many(calls(*numbers), **options))
    return work.delay_many(calls(*numbers), **options)


def test_it_says_how_many_wait_and_what_to_do(rtq):
    rtq.queues[QUEUE].limit(max_waiting=1)
    add.delay(1)

    with pytest.raises(QueueFull) as caught:
        add.delay(2)

    error = caught.value
    assert (error.queue, error.client, error.waiting, error.limit, error.handles) == (QUEUE, None, 1, 1, [None])
    assert str(error) == (
        "Queue default is full (waiting jobs: 1, max_waiting: 1). Enqueue later, run more workers, or raise the "
        "limit: manage.py rtq_clients limit default --whole-queue --max-waiting N"
    )


def test_it_names_the_client_whose_limit_it_is(rtq):
    rtq.queues[QUEUE].limit_clients(max_waiting=1)
    add.delay(1)

    with pytest.raises(
        QueueFull, match=r"^Client 'c1' of queue default is full .waiting jobs: 1.* --client c1 "
    ) as caught:
        add.delay(1)

    assert caught.value.client == "c1"
    add.delay(2)


@pytest.mark.parametrize("is_async", [False, True])
def test_delay_many_says_which_jobs_were_stored(announced, is_async, rtq):
    rtq.queues[QUEUE].limit_clients(max_waiting=1)

    with pytest.raises(QueueFull, match="2 of 3 jobs were stored") as caught:
        delay_many(add, is_async, 1, 1, 2)

    error = caught.value
    first, none, last = error.handles
    assert (none, error.accepted) == (None, 2)
    assert announced == [first.id, last.id]
    assert [first.state, last.state] == ["queued", "queued"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("work", [add, once])
def test_all_or_none(announced, is_async, work, rtq):
    rtq.queues[QUEUE].limit(max_waiting=2)

    with pytest.raises(QueueFull, match="0 of 3 jobs were stored"):
        delay_many(work, is_async, 1, 2, 3, all_or_none=True)

    assert announced == []
    assert len(work.delay_many(calls(1, 2), all_or_none=True)) == 2


def test_a_duplicate_is_no_new_job(rtq):
    rtq.queues[QUEUE].limit(max_waiting=1)
    job = once.delay(1)

    again = once.delay(1)

    assert (again.id, again.duplicate) == (job.id, True)
    with pytest.raises(QueueFull):
        once.delay(2)


def test_nothing_is_full_in_a_test_without_redis(rtq):
    rtq.queues[QUEUE].limit(max_waiting=0)

    with captured() as jobs:
        add.delay_many(calls(1, 2), all_or_none=True)

    assert len(jobs) == 2


# -- on_full="wait": delay() waits for room


@contextmanager
def on_full(**options):
    """With other options of the queue, and the broker of these settings."""
    with override_settings(RTQ={**settings.RTQ, "QUEUES": {QUEUE: options}}):
        yield
        get_broker().close()


@pytest.fixture
def tries(broker, monkeypatch, rtq):
    """Waiting takes no time: instead of it the next of these functions is called."""
    calls = []
    left = iter(calls)

    def pause(seconds):
        assert 0 <= seconds <= enqueuing.LONGEST_PAUSE
        next(left)()

    async def apause(seconds):
        await asyncio.sleep(0)
        pause(seconds)

    monkeypatch.setattr(commands, "time", SimpleNamespace(sleep=pause))
    monkeypatch.setattr(commands, "asyncio", SimpleNamespace(sleep=apause))
    rtq.queues[QUEUE].limit(max_waiting=1)
    with on_full(on_full="wait", on_full_timeout=3600):
        yield calls


def nothing():
    """There is no room yet."""


@pytest.mark.parametrize("work", [plain, once])
@pytest.mark.parametrize("is_async", [False, True])
def test_it_goes_on_as_soon_as_there_is_room(broker, tries, work, is_async):
    first = work.delay(1)
    tries += [nothing, nothing, lambda: claim(broker)]

    second = asyncio.run(work.adelay(2)) if is_async else work.delay(2)

    assert (first.state, second.state) == ("running", "queued")


def test_only_what_was_refused_is_sent_again(broker, tries):
    tries += [nothing, lambda: claim(broker), lambda: claim(broker)]

    jobs = plain.delay_many([((number,), {}) for number in range(3)])

    assert [job.state for job in jobs] == ["running", "running", "queued"]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_handles_are_right_if_more_are_sent_again_than_one_round_trip_takes(broker, tries, is_async, rtq):
    tries += [nothing, lambda: rtq.queues[QUEUE].limit(max_waiting=1000)]
    calls = [((number,), {}) for number in range(802)]

    jobs = asyncio.run(once.adelay_many(calls)) if is_async else once.delay_many(calls)

    assert claim_all(broker, 500) == [job.id for job in jobs]


def test_none_waits_for_more_of_a_full_client_than_one_round_trip_takes(tries, rtq, monkeypatch):
    monkeypatch.setattr(enqueue_calls, "CALLS_IN_FLIGHT", 1)
    queue = rtq.queues[QUEUE]
    queue.limit(max_waiting=0)
    rtq.clients["full"].limit(QUEUE, max_waiting=0)
    tries += [lambda: queue.limit(max_waiting=None), lambda: rtq.clients["full"].limit(QUEUE, max_waiting=None)]

    of_clients = plain.using(client=lambda number: "full" if number < 500 else "free")
    jobs = of_clients.delay_many([((number,), {}) for number in range(501)])

    assert rtq.jobs.filter(queue=QUEUE).count() == len(jobs)


@pytest.mark.parametrize("is_async", [False, True])
def test_after_its_time_it_raises(broker, is_async, rtq):
    rtq.queues[QUEUE].limit(max_waiting=0)

    with on_full(on_full="wait", on_full_timeout=0.01), pytest.raises(QueueFull):
        asyncio.run(plain.adelay(1)) if is_async else plain.delay(1)


@pytest.mark.django_db(transaction=True)
def test_it_does_not_wait_in_a_transaction(tries):
    plain.delay(1)

    with pytest.raises(QueueFull), transaction.atomic():
        plain.delay(2)
