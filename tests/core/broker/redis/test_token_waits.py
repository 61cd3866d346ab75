"""aget(): coroutines that wait share a connection, and none misses the end of its job."""

import asyncio
import gc
import json
import warnings

import pytest

from django_rtq import JobHandle, task
from django_rtq.core.broker.one_job import await_token
from django_rtq.core.broker.redis import async_client
from django_rtq.core.broker.redis.commands import Token
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.exceptions import BrokerUnavailable, JobNotFound, ResultTimeout
from tests.support.jobs import QUEUE, claim, settle
from tests.support.waiting import wait_until

OUTCOME = json.dumps({"state": "succeeded", "task": f"{__name__}.add", "attempt": 1, "seconds": 0.5, "result": 3})


@task
def add(a, b=2):
    return a + b


def finish(broker, *handles, verb="ack"):
    claim(broker, wanted=len(handles))
    for handle in handles:
        assert settle(broker, verb, handle, worker="w2", **({"outcome": OUTCOME} if verb == "ack" else {})) == []


def blocked(redis):
    return [client for client in redis.client_list() if client["cmd"] == "blpop" and "b" in client["flags"]]


async def until(condition):
    await asyncio.to_thread(wait_until, condition)


async def waiting_for(redis, *handles, timeout=20):
    """Tasks that wait for these jobs, once Redis holds their read."""
    tasks = [asyncio.create_task(handle.aget(timeout)) for handle in handles]
    await until(lambda: blocked(redis))
    return tasks


def test_many_wait_on_one_connection(redis, broker):
    handles = add.delay_many([((i,), {}) for i in range(50)])

    async def call():
        tasks = await waiting_for(redis, *handles)
        held = len(blocked(redis))
        await asyncio.to_thread(finish, broker, *handles)
        return held, await asyncio.gather(*tasks)

    assert asyncio.run(call()) == (1, [3] * 50)
    assert not blocked(redis)


def test_a_connection_waits_for_a_limited_number(redis, broker, monkeypatch):
    monkeypatch.setattr(async_client, "MAX_LISTS", 5)
    handles = add.delay_many([((i,), {}) for i in range(12)])

    async def call():
        tasks = await waiting_for(redis, *handles)
        await until(lambda: len(blocked(redis)) == 3)
        await asyncio.to_thread(finish, broker, *handles)
        return await asyncio.gather(*tasks)

    assert asyncio.run(call()) == [3] * 12


def test_whoever_comes_later_joins_the_wait(redis, broker):
    first, second = add.delay(1), add.delay(2)

    async def call():
        (one,) = await waiting_for(redis, first)
        other = asyncio.create_task(second.aget(20))
        await until(lambda: redis.zscore(broker.keys.of(QUEUE).waiters, second.id))
        claim(broker, wanted=2)
        settle(broker, "ack", second, worker="w2", outcome=OUTCOME)
        result = await other
        assert not one.done()
        settle(broker, "ack", first, worker="w2", outcome=OUTCOME)
        return result, await one

    assert asyncio.run(call()) == (3, 3)


def test_several_wait_for_the_same_job_in_one_process_and_in_another(redis, broker):
    handle, other_process = add.delay(1), WorkerBroker(broker.config)

    async def call():
        tasks = await waiting_for(redis, handle, JobHandle(handle.id, QUEUE), JobHandle(handle.id, QUEUE))
        keys = other_process.keys.of(QUEUE)
        put = SCRIPTS["register_waiter"].call(keys, (handle.id, 20_000))
        token = Token(keys.finished_signal + handle.id.encode(), put)
        others = [asyncio.create_task(await_token(other_process, token, 20)) for _ in range(2)]
        threads = [asyncio.create_task(asyncio.to_thread(JobHandle(handle.id, QUEUE).get, 20)) for _ in range(2)]
        await until(lambda: len(blocked(redis)) == 2)
        await until(lambda: [c for c in redis.client_list() if c["cmd"] == "blmove"])
        finish(broker, handle)
        return await asyncio.gather(*tasks, *threads), await asyncio.gather(*others)

    assert asyncio.run(call()) == ([3] * 5, [True] * 2)
    other_process.close()


def test_a_timeout_of_one_is_not_that_of_another(redis, broker):
    first, second = add.delay(1), add.delay(2)

    async def call():
        (one,) = await waiting_for(redis, first)
        with pytest.raises(ResultTimeout):
            await second.aget(0.05)
        finish(broker, first, second)
        return await one, await second.aget(1)

    assert asyncio.run(call()) == (3, 3)


def test_cancelled_it_leaves_nothing_behind(redis, broker):
    handle = add.delay(1)

    async def call():
        (one,) = await waiting_for(redis, handle)
        one.cancel()
        await asyncio.wait([one])
        await until(lambda: not blocked(redis))
        (one,) = await waiting_for(redis, handle)
        finish(broker, handle)
        return await one

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(call()) == 3
        gc.collect()


def test_the_token_of_a_wait_that_was_cancelled_is_left_for_others(redis, broker):
    first, second = add.delay(1), add.delay(2)
    key = broker.keys.of(QUEUE).finished_signal + first.id.encode()

    async def call():
        one, other = await waiting_for(redis, first, second)
        one.cancel()  # Redis still holds the read of both
        claim(broker, wanted=2)
        settle(broker, "ack", first, worker="w2", outcome=OUTCOME)
        await until(lambda: redis.exists(key) and not other.done())
        settle(broker, "ack", second, worker="w2", outcome=OUTCOME)
        return await other

    assert asyncio.run(call()) == 3


def test_a_token_on_its_way_to_a_wait_that_is_cancelled_is_left_for_others(redis, broker):
    handle = add.delay(1)
    key = broker.keys.of(QUEUE).finished_signal + handle.id.encode()

    async def call():
        (one,) = await waiting_for(redis, handle)
        finish(broker, handle)  # the event loop does not read the token before
        one.cancel()
        await until(lambda: redis.exists(key))

    asyncio.run(call())
    wait_until(lambda: not blocked(redis))


def test_a_token_of_a_wait_that_is_cancelled_when_it_came_is_left_for_others(redis, broker, monkeypatch):
    handle = add.delay(1)
    key = broker.keys.of(QUEUE).finished_signal + handle.id.encode()

    async def call():
        (one,) = await waiting_for(redis, handle)
        resolve = async_client.resolve
        monkeypatch.setattr(async_client, "resolve", lambda *what: (resolve(*what), one.cancel()))
        finish(broker, handle)
        with pytest.raises(asyncio.CancelledError):
            await one
        await until(lambda: redis.exists(key))

    asyncio.run(call())


def test_a_token_on_its_way_to_an_event_loop_that_ends_is_left_for_others(redis, broker):
    handle = add.delay(1)
    key = broker.keys.of(QUEUE).finished_signal + handle.id.encode()

    async def call():
        await waiting_for(redis, handle)
        finish(broker, handle)

    asyncio.run(call())
    assert redis.exists(key)


def test_an_event_loop_that_ends_leaves_nothing_behind(redis, broker):
    handle = add.delay(1)

    async def call():
        await waiting_for(redis, handle)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(call())
        gc.collect()

    wait_until(lambda: not blocked(redis))
    assert not list(broker.async_redis._readers)


def test_a_connection_that_is_cut_is_replaced(redis, broker):
    handle = add.delay(1)

    async def call():
        (one,) = await waiting_for(redis, handle)
        (before,) = blocked(redis)
        redis.client_kill_filter(_id=before["id"])
        await until(lambda: blocked(redis) and blocked(redis)[0]["id"] != before["id"])
        finish(broker, handle)
        return await one

    assert asyncio.run(call()) == 3


def test_redis_away(redis, broker, monkeypatch):
    handle = add.delay(1)
    monkeypatch.setitem(broker.async_redis._blocking._connections.pool.connection_kwargs, "port", 1)

    with pytest.raises(BrokerUnavailable):
        asyncio.run(handle.aget(5))


def test_while_redis_is_full(redis, broker):
    handle = add.delay(1)

    async def call():
        with redis.full_memory():
            (one,) = await waiting_for(redis, handle)
            other = asyncio.create_task(JobHandle("never-was", QUEUE).aget(20))
            with pytest.raises(JobNotFound):
                await other
            finish(broker, handle)
            return await one

    assert asyncio.run(call()) == 3
