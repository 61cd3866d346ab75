"""What is replaced for speed does the same as the plain way."""

import time

import pytest
from redis.connection import PythonRespSerializer
from redis.exceptions import ResponseError

from django_rtq.core.broker.redis.speedups import (
    FewIdleConnections,
    IdleConnections,
    can_read_within,
    pack,
    received_reply,
)
from tests.support.jobs import queued_job
from tests.support.waiting import wait_until

HEAD = (b"EVALSHA", b"f" * 40, 1, "{rtq:größe}:jobs".encode())


def plain(command):
    """The command as redis-py's Python serializer packs it."""
    return b"".join(
        PythonRespSerializer(10**9, lambda v: v if isinstance(v, bytes) else str(v).encode()).pack(*command)
    )


@pytest.mark.parametrize(
    "arguments", [(), ("",), (1, -100, "a b", "\r\n$1\r\n", "\x00"), ("x" * 100_000,), ("é", "🦄")]
)
def test_commands_are_packed_as_redis_py_packs_them(arguments):
    command = (*HEAD, *arguments)

    assert pack(command) == plain(command)


def test_a_connection_is_used_again_without_the_pool(broker, monkeypatch):
    queued_job(broker)
    pool = broker.connection_settings.command_pool(role="test")
    connections = IdleConnections(pool)
    first = connections.take(is_checked=True)
    connections.give_back(first)
    monkeypatch.setattr(pool, "get_connection", lambda *arguments: pytest.fail("asked the pool"))

    assert connections.take(is_checked=True) is first

    connections.give_back(first)
    connections.close()
    assert connections.connections_lost == 1


def test_connections_in_use_stay_open_when_idle_ones_are_closed(broker):
    connections = IdleConnections(broker.connection_settings.command_pool(role="test"))
    used, idle = (connections.take(is_checked=True) for _ in range(2))
    connections.give_back(idle)

    connections.close_idle()

    assert (used.is_connected, idle.is_connected) == (True, False)
    connections.drop(used)


@pytest.fixture
def few(broker):
    """FewIdleConnections, and functions that take and give back so many."""
    queued_job(broker)
    connections = FewIdleConnections(broker.connection_settings.command_pool(role="test"))
    yield connections
    connections.close()


def test_few_idle_connections_are_kept(redis, few, monkeypatch):
    monkeypatch.setattr("django_rtq.core.broker.redis.speedups.MAX_IDLE", 2)
    taken = [few.take(is_checked=True) for _ in range(4)]
    for connection in taken:
        few.give_back(connection)

    wait_until(lambda: len([c for c in redis.client_list() if c["name"] == "rtq:test"]) == 2)
    assert few.take(is_checked=True) is taken[1]


def test_a_connection_that_was_idle_for_long_is_closed(redis, few, monkeypatch):
    first, second = (few.take(is_checked=True) for _ in range(2))
    few.give_back(first)
    monkeypatch.setattr("django_rtq.core.broker.redis.speedups.MAX_IDLE_SECONDS", -1)

    few.give_back(second)
    wait_until(lambda: not [c for c in redis.client_list() if c["name"] == "rtq:test"])

    assert few.take(is_checked=True).is_connected


def test_a_timed_wait_ends_on_time(broker):
    connection = broker.connection_settings.blocking_pool(role="test", block_seconds=1).make_connection()
    connection.connect()
    try:
        started = time.monotonic()
        assert not can_read_within(connection, 0.0104)
        assert time.monotonic() - started >= 0.0104
    finally:
        connection.disconnect()


def test_a_reply_that_came_with_the_last_one_is_there_already(broker):
    connection = broker.connection_settings.blocking_pool(role="test", block_seconds=1).make_connection()
    assert received_reply(connection) is None
    connection.connect()
    try:
        connection.send_command("PING")
        assert connection.read_response() == b"PONG"
        assert received_reply(connection) is None

        reader = connection._parser._reader
        reader.feed(b"*1\r\n:7\r\n-ERR no\r\n*2\r\n:1\r\n")
        assert received_reply(connection) == [7]
        assert isinstance(received_reply(connection), ResponseError)
        assert received_reply(connection) is None  # the rest is on its way
        reader.feed(b":2\r\n")
        assert connection.read_response() == [1, 2]
    finally:
        connection.disconnect()
