"""Commands of coroutines: sent together, one reply each, whatever becomes of the connection, the caller, or the event
loop."""

import asyncio
import gc
import os
import warnings

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.redis import async_client
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerRefused, BrokerUnavailable
from testproject.redis_server import PrivateRedis, free_port
from tests.support.jobs import QUEUE
from tests.support.tls import Certificate, skipped_without_tls
from tests.support.waiting import start_thread, wait_until

COUNT = ("INCR", "rtq:counter")


def counted(redis):
    return int(redis.get("rtq:counter") or 0)


def run(broker, *commands):
    return asyncio.run(broker.async_redis.execute(commands))


async def together(*coroutines):
    return await asyncio.gather(*coroutines, return_exceptions=True)


# Together


def test_calls_that_come_together_are_sent_together(broker, round_trips):
    async def call():
        return await together(*(broker.async_redis.execute([COUNT, ("ECHO", i)]) for i in range(100)))

    assert asyncio.run(call()) == [[i + 1, str(i).encode()] for i in range(100)]
    assert round_trips == [["INCR", "ECHO"] * 100]


def test_calls_that_come_meanwhile_are_not_forgotten(broker):
    async def several():
        return [(await broker.async_redis.execute([("ECHO", i)]))[0] for i in range(40)]

    async def call():
        return await asyncio.wait_for(together(*(several() for _ in range(30))), 60)

    assert asyncio.run(call()) == [[str(i).encode() for i in range(40)]] * 30


def test_an_event_loop_uses_few_connections(redis, broker):
    async def call():
        for _ in range(5):
            await together(*(broker.async_redis.execute([("ECHO", "x" * 300_000)]) for _ in range(40)))

    asyncio.run(call())

    assert 1 <= len(redis.clients_of_ours()) <= async_client.MAX_PACKETS


def test_large_calls_are_sent_in_several_packets(broker, round_trips):
    large = "x" * (async_client.MAX_PACKET_BYTES // 2)

    async def call():
        return await together(*(broker.async_redis.execute([("ECHO", f"{large}{i}")]) for i in range(5)))

    assert asyncio.run(call()) == [[f"{large}{i}".encode()] for i in range(5)]
    assert len(round_trips) == 3


def test_the_error_of_one_call_is_not_that_of_another(redis, broker):
    redis.set("rtq:text", "x")

    async def call():
        client = broker.async_redis
        return await together(
            client.execute([COUNT]), client.execute([("LPUSH", "rtq:text", "y")]), client.run(steps())
        )

    def steps():
        return (yield [("LPUSH", "rtq:text", "y"), COUNT])

    first, second, (refused, last) = asyncio.run(call())

    assert (first, last) == ([1], 2)
    assert isinstance(second, BrokerError)
    assert isinstance(refused, BrokerError)


# Scripts and errors


def test_a_script_is_loaded_when_redis_does_not_know_it(redis, broker):
    redis.script_flush()
    renew = SCRIPTS["renew"].call(broker.keys.of(QUEUE), (1000, "", 0))

    assert run(broker, COUNT, renew, COUNT) == [1, [[-1, [], [], 0, -1]], 2]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("LOADING Redis is loading the dataset in memory", BrokerUnavailable),
        ("READONLY You can't write against a read only replica.", BrokerUnavailable),
        ("NOAUTH Authentication required.", BrokerRefused),
        ("OOM command not allowed when used memory > 'maxmemory'.", BrokerFull),
        ("ERR something else", BrokerError),
    ],
)
def test_errors_are_those_of_threads(redis, broker, answer, kind):
    def error_of(call):
        redis.answer_once(f"-{answer}\r\n".encode(), around=b"INCR")
        with pytest.raises(BrokerError) as caught:
            call()
        return type(caught.value), str(caught.value)

    found = error_of(lambda: run(broker, COUNT))

    assert found == error_of(lambda: broker.redis.execute([COUNT]))
    assert found[0] is kind
    assert run(broker, COUNT) == [1]


def test_each_caller_gets_an_error_of_its_own(redis, broker, monkeypatch):
    monkeypatch.setitem(broker.async_redis._connections._connections.pool.connection_kwargs, "port", 1)

    first, second = asyncio.run(together(*[broker.async_redis.execute([COUNT]) for _ in range(2)]))

    assert type(first) is type(second)
    assert isinstance(first, BrokerUnavailable)
    assert first is not second


# Lost connections


@pytest.mark.parametrize(("moment", "done"), [("before", 1), ("after", 2)])
def test_what_was_lost_is_sent_once_more(redis, broker, moment, done):
    redis.drop_connection(moment, around=b"INCR")

    assert run(broker, COUNT) == [done]


def test_what_was_not_answered_in_time_is_not_sent_again(redis, broker, monkeypatch):
    run(broker, ("PING",))
    (connection,) = broker.async_redis._connections._connections._idle
    monkeypatch.setattr(connection, "socket_timeout", 0.05)  # not while it connects
    redis.stay_silent_once(around=b"INCR")

    with pytest.raises(BrokerUnavailable, match="in time"):
        run(broker, COUNT)

    assert counted(redis) == 0
    assert run(broker, ("ECHO", "mine")) == [b"mine"]


def test_connections_that_were_cut_while_idle_cost_nothing(redis, broker):
    async def call():
        client = broker.async_redis
        await together(*(client.execute([("ECHO", "x" * async_client.MAX_PACKET_BYTES)]) for _ in range(4)))
        redis.client_kill_filter(_type="normal", skipme=True)
        return await client.execute([COUNT])

    assert asyncio.run(call()) == [1]


# Callers that do not wait for the reply


def test_the_reply_to_a_cancelled_call_is_not_that_of_another(redis, broker, monkeypatch):
    monkeypatch.setattr(async_client, "MAX_PACKETS", 1)

    async def call():
        client = broker.async_redis
        await client.execute([("PING",)])
        cancelled = asyncio.create_task(client.execute([("BLPOP", "rtq:nothing", 0.05), COUNT]))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        return await together(*(client.execute([("ECHO", i)]) for i in range(3)), cancelled)

    *echoes, first = asyncio.run(call())

    assert echoes == [[b"0"], [b"1"], [b"2"]]
    assert isinstance(first, asyncio.CancelledError)
    assert counted(redis) == 1


def test_a_call_that_is_cancelled_before_it_is_sent_is_not_sent(redis, broker):
    async def call():
        task = asyncio.create_task(broker.async_redis.execute([COUNT]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0.01)

    asyncio.run(call())

    assert counted(redis) == 0


def test_whoever_cancels_all_tasks_can_go_on(broker):
    async def call():
        client = broker.async_redis
        waiting = asyncio.create_task(client.execute([("BLPOP", "rtq:nothing", 30)]))
        await asyncio.sleep(0.02)
        for task in asyncio.all_tasks() - {asyncio.current_task(), waiting}:
            task.cancel()
        (error,) = await together(waiting)
        return error, await client.execute([COUNT])

    error, replies = asyncio.run(call())

    assert isinstance(error, BrokerUnavailable)
    assert "may have run" in str(error)
    assert replies == [1]


def test_closed_it_may_be_used_again(redis, broker):
    run(broker, COUNT)
    broker.close()
    wait_until(lambda: not redis.clients_of_ours())

    assert run(broker, COUNT) == [2]


# Event loops that come and go


@pytest.mark.parametrize("debug", [False, True])
def test_event_loops_leave_nothing_behind_and_share_connections(redis, broker, debug):
    async def left_alone():
        asyncio.get_running_loop().create_task(broker.async_redis.execute([COUNT]))
        await asyncio.sleep(0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            async_to_sync(broker.async_redis.execute)([COUNT])
            asyncio.run(broker.async_redis.execute([COUNT]), debug=debug)
            loop = asyncio.new_event_loop()
            loop.run_until_complete(broker.async_redis.execute([COUNT]))
            loop.close()
        assert len(redis.clients_of_ours()) == 1
        asyncio.run(left_alone(), debug=debug)
        del loop
        gc.collect()

    assert counted(redis) >= 15
    assert not list(broker.async_redis._outboxes)


def test_several_threads_have_event_loops_at_once(redis, broker):
    async def call():
        for _ in range(50):
            await asyncio.gather(*(broker.async_redis.execute([COUNT]) for _ in range(5)))

    threads = [start_thread(asyncio.run, call()) for _ in range(4)]
    for thread in threads:
        thread.join()

    assert counted(redis) == 1000


def test_a_fork_uses_connections_of_its_own(redis, broker):
    run(broker, COUNT)

    if (pid := os.fork()) == 0:
        try:
            os._exit(0 if asyncio.run(get_broker().async_redis.execute([COUNT])) == [2] else 1)
        finally:
            os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert run(broker, COUNT) == [3]


# Other kinds of servers and connections


def test_a_unix_socket(server):
    broker = WorkerBroker(Config(redis=f"unix://{server.socket_path}"))
    large = "x" * 3_000_000

    assert run(broker, ("ECHO", large), ("ECHO", "y")) == [large.encode(), b"y"]
    broker.close()


def test_tls(tmp_path):
    certificate, port = Certificate(tmp_path), free_port()
    server = PrivateRedis(arguments=certificate.arguments(port))
    with skipped_without_tls():
        server.start()
    broker = WorkerBroker(Config(redis=f"rediss://localhost:{port}/0?ssl_ca_certs={certificate.path}"))
    large = "x" * 3_000_000

    async def call():
        return await asyncio.gather(*(broker.async_redis.execute([("ECHO", f"{large}{i}")]) for i in range(8)))

    assert asyncio.run(call()) == [[f"{large}{i}".encode()] for i in range(8)]
    broker.close()
    server.stop()


def test_connections_without_a_socket_work_in_threads(factory):
    fakeredis = pytest.importorskip("fakeredis")
    server = fakeredis.FakeServer()
    with override_settings(RTQ={"REDIS": factory(lambda: fakeredis.FakeRedis(server=server))}):
        assert run(get_broker(), COUNT, COUNT) == [1, 2]
        get_broker().close()
