"""QueueFull: what delay() and its kin do when a queue takes no more jobs in (max_waiting)."""

import asyncio

import pytest

from django_rtq import QueueFull, task
from django_rtq.signals import job_enqueued
from tests.support.apps import captured
from tests.support.jobs import QUEUE
from tests.support.receivers import receiving


@task(client=lambda number: f"c{number}")
def add(number):
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
