"""The methods for coroutines do what those for threads do, and use no thread for a call."""

import asyncio
import threading
import unittest

import pytest
from asgiref.sync import sync_to_async

from django_rtq import CancelAnswer, JobHandle, JobState, task
from django_rtq.core.broker.one_job import access_to_jobs
from django_rtq.exceptions import (
    JobNotFound,
    RedisNotAllowed,
    WrongState,
)
from django_rtq.signals import job_cancelled, job_enqueued
from tests.support.apps import captured
from tests.support.jobs import QUEUE, receiving, settle, take, take_all


@task
def add(a, b=2):
    return a + b


@task(unique=True)
def only(a):
    return a


def test_no_thread_is_used(broker, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a thread was used")

    async def call():
        await add.adelay(0)  # connects, in a thread
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "to_thread", refuse)
            patch.setattr(threading.Thread, "start", refuse)
            one, two = await asyncio.gather(add.adelay(1), add.adelay_many([((2,), {}), ((3,), {"b": 4})]))
            return [await one.astate(), await two[0].astate()], (await one.arefresh()).args

    assert asyncio.run(call()) == ([JobState.QUEUED] * 2, [1])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_connection_makes_neither_none_nor_two(redis, broker, moment):
    async def call():
        await add.adelay(0)
        redis.drop_connection(moment)
        return await asyncio.gather(*(add.adelay(i) for i in range(10)))

    handles = asyncio.run(call())

    assert [job.id for job in take_all(broker)][1:] == [handle.id for handle in handles]


def test_receivers_of_both_kinds_are_told(broker):
    told = []

    async def hear_async(job_ids, **kwargs):
        told.append(("async", job_ids))

    def hear(job_ids, **kwargs):
        told.append(("sync", job_ids))

    with receiving(hear_async, job_enqueued), receiving(hear, job_enqueued):
        handle = asyncio.run(add.adelay(1))

    assert sorted(told) == [("async", [handle.id]), ("sync", [handle.id])]


# Handles


def test_a_handle_tells_what_became_of_its_job(broker):
    outcome = '{"state":"succeeded","task":"t","attempt":1,"seconds":0.5,"result":[1]}'

    async def call():
        handle = await add.adelay(1)
        with pytest.raises(WrongState, match="has no result: it is queued"):
            await handle.aresult()
        take(broker, worker="w2")
        settle(broker, "ack", handle, worker="w2", outcome=outcome)
        return await handle.aresult(), await handle.astate(), await handle.aget(), handle.result

    assert asyncio.run(call()) == ([1], JobState.SUCCEEDED, [1], [1])


def test_cancelling(broker):
    told = []

    async def call():
        waiting, running = await add.adelay(1), await add.adelay(2)
        cancelled = await waiting.acancel()
        take(broker)
        asked = await running.acancel(terminate=True)
        assert (await running.arefresh()).is_stopping
        with pytest.raises(JobNotFound):
            await JobHandle("never-was", QUEUE).acancel()
        again = await access_to_jobs("").acancel(waiting.id)
        return waiting.id, [cancelled, asked, again]

    with receiving(lambda job_id, **_: told.append(job_id), job_cancelled):
        job_id, answers = asyncio.run(call())

    assert answers == [CancelAnswer.CANCELLED, CancelAnswer.ASKED, CancelAnswer.CANCELLED]
    assert told == [job_id]


# In tests of projects


class TestWithinATestOfAsyncio(unittest.IsolatedAsyncioTestCase):
    async def test_jobs_are_captured(self):
        with captured() as jobs:
            first, (second,) = await asyncio.gather(add.adelay(1), add.adelay_many([((2,), {})]))
            assert await first.astate() is JobState.QUEUED
            await second.acancel()
            assert await second.astate() is JobState.CANCELLED
            with pytest.raises(WrongState, match="would wait for ever"):
                await first.aget()
        assert [job.args for job in jobs] == [[1], [2]]

    async def test_jobs_of_its_threads_are_captured(self):
        with captured() as jobs:
            await sync_to_async(add.delay)(1)
        assert len(jobs) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: add.adelay(1),
        lambda: add.adelay_many([((1,), {})]),
        lambda: JobHandle("some-id", QUEUE).aget(1),
        lambda: JobHandle("some-id", QUEUE).arefresh(),
        lambda: JobHandle("some-id", QUEUE).acancel(),
    ],
)
def test_the_redis_of_the_project_is_refused(call, monkeypatch):
    monkeypatch.setattr("django_rtq.core.conf.config._redis_of_project", lambda: "redis://127.0.0.1:1/0")

    with pytest.raises(RedisNotAllowed, match="captured"):
        asyncio.run(call())
