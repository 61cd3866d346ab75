"""Commands of coroutines: event loops that come and go, forks, and other kinds of connections."""

import asyncio
import gc
import os
import threading
import warnings

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config
from testproject.redis_server import PrivateRedis, free_port
from tests.support.tls import Certificate, skipped_without_tls

COUNT = ("INCR", "rtq:counter")


def counted(redis):
    return int(redis.get("rtq:counter") or 0)


def run(broker, *commands):
    return asyncio.run(broker.async_redis.execute(commands))


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

    threads = [threading.Thread(target=asyncio.run, args=(call(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
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
