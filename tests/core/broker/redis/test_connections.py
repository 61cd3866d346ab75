"""The two kinds of connections made with ConnectionSettings: pools for commands, and one that blocks."""

import socket
from dataclasses import replace

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import SentinelManagedConnection

from django_rtq.core.broker.redis.connections import ConnectionSettings, identity_arguments
from tests.core.broker.redis.connections import (
    ask,
    client_of,
    django_redis_pool,
    native,
    reader_of,
    settings_of,
    settings_of_alias,
)
from tests.support.fault_proxy import Fault, FaultProxy

DEAD = "redis://127.0.0.1:1"
LOSSY_SECONDS = 0.3
#: What is on the server after a push, by the moment at which it got lost.
ARRIVED = {"before": [], "after": [b"job"], "silence": []}


def test_both_kinds_of_connections_work_over_a_unix_socket(empty):
    connection_settings = settings_of(f"unix://{empty.socket_path}?db=2")
    with client_of(connection_settings) as client, reader_of(connection_settings, block_seconds=1) as reader:
        client.zadd("waiting", {"job": 7})

        assert ask(reader, "BZPOPMIN", "waiting", 1) == [b"waiting", b"job", b"7"]


@pytest.mark.parametrize("scheme", ["redis", "unix"])
def test_connections_have_the_time_outs_that_they_promise(empty, scheme):
    connection_settings = settings_of(
        f"unix://{empty.socket_path}" if scheme == "unix" else f"{empty.url}?socket_timeout=0.1"
    )
    with client_of(connection_settings) as client, reader_of(connection_settings, block_seconds=30) as reader:
        command = client.connection_pool.make_connection()

        assert (command.socket_timeout, command.socket_connect_timeout) == (5, 5)
        assert (reader.socket_timeout, reader.socket_connect_timeout) == (35, 5)
        assert (command.health_check_interval, reader.health_check_interval) == (30, 0)


def test_connections_say_who_they_are_and_stay_alive(empty):
    connection_settings = settings_of(empty.url)
    with client_of(connection_settings) as client, reader_of(connection_settings) as reader:
        reader.connect()

        assert {"rtq:test", "rtq:reader"} <= {entry["name"] for entry in client.client_list()}
        assert reader._sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_blocking_connection_is_not_connected_until_it_is_used(empty):
    connection_settings = settings_of(DEAD)
    with reader_of(connection_settings) as reader, pytest.raises(redis.ConnectionError):
        reader.connect()


def test_replies_keep_their_shape_when_the_url_asks_for_resp3(empty):
    with reader_of(settings_of(f"{empty.url}?protocol=3")) as reader:
        ask(reader, "HSET", "jobs", "id", "record")

        assert ask(reader, "HGETALL", "jobs") == [b"id", b"record"]


# Nothing is sent twice


def retrying():
    """Three retries, in the words of all versions of redis-py."""
    return {
        "retry": Retry(NoBackoff(), 3),
        "retry_on_error": [redis.ConnectionError, redis.TimeoutError],
    }


def lossy_settings(kind, url, factory):
    if kind == "url":
        return settings_of(f"{url}?retry_on_timeout=true", 1)
    if kind == "factory":
        client = redis.Redis.from_url(url, **retrying())
        return settings_of(factory(lambda: client), 1)
    backend = native if kind == "native" else django_redis_pool
    return settings_of_alias(backend(url, **retrying()))


@pytest.fixture
def lossy(empty):
    """A way to the server on which a command, or its reply, can get lost."""
    with FaultProxy(empty.port) as proxy:
        yield proxy


def pushed(server, *, db):
    """The jobs that have arrived."""
    with redis.Redis(port=server.port, db=db) as client:
        return client.lrange("queue", 0, -1)


@pytest.mark.parametrize("moment", ARRIVED)
@pytest.mark.parametrize("kind", ["url", "django-redis", "native", "factory"])
def test_a_command_whose_reply_is_lost_is_not_sent_again(empty, lossy, factory, kind, moment):
    connection_settings = replace(lossy_settings(kind, lossy.url, factory), socket_timeout=LOSSY_SECONDS)
    lossy.arm(Fault(moment, b"RPUSH"))

    with client_of(connection_settings) as client, pytest.raises((redis.ConnectionError, redis.TimeoutError)):
        client.rpush("queue", "job")

    assert pushed(empty, db=1) == ARRIVED[moment]


# Recipes are values


def test_of_a_foreign_class_all_is_kept_that_redis_py_has_no_name_for():
    class Tunnelled(redis.Connection):
        def __init__(self, *, gateway, **kwargs):
            super().__init__(**kwargs)

    arguments = {"gateway": "g", "host": "h", "socket_timeout": 1, "retry": None, "connection_pool": 1}

    assert identity_arguments(Tunnelled, arguments) == {"gateway": "g", "host": "h"}
    assert identity_arguments(redis.Connection, arguments) == {"host": "h"}
    assert identity_arguments(SentinelManagedConnection, arguments) == {"host": "h"}


def test_equal_settings_are_equal_and_can_be_keys():
    one, same, other = (settings_of(f"redis://host/{db}") for db in (1, 1, 2))

    assert one == same != other
    assert len({one, same, other}) == 2
    assert ConnectionSettings() == settings_of("redis://")
