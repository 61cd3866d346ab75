"""Sentinels in RTQ["REDIS"], described there or by an alias or a factory: they lead to the master."""

import asyncio
import time
from contextlib import contextmanager
from unittest.mock import Mock

import pytest
import redis
from redis.connection import SSLConnection
from redis.sentinel import MasterNotFoundError, Sentinel, SentinelManagedSSLConnection

from django_rtq.core.broker.redis.blocking_reader import BlockingReader
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config
from django_rtq.exceptions import BrokerRefused, ConfigurationError
from django_rtq.scale import masters
from django_rtq.scale.masters import master_of
from testproject.redis_server import PrivateRedis
from tests.core.broker.redis.connections import ask, client_of, django_redis, reader_of, settings_of, settings_of_alias
from tests.core.broker.test_server_info import asked, listening, resp
from tests.support.redis_sentinel import PrivateSentinel
from tests.support.waiting import PATIENCE


@pytest.fixture(scope="module")
def sentinel(server):
    with PrivateSentinel(server.port) as sentinel:
        yield sentinel


@pytest.fixture
def other_server():
    with PrivateRedis() as server:
        yield server


def sentinels_of(sentinel, **more):
    # The first one is gone, as one of three may be.
    addresses = [("127.0.0.1", 1), ("127.0.0.1", sentinel.port)]
    return {"sentinels": addresses, "service": "mymaster", **more}


def sentinel_cache(sentinel, **options):
    return django_redis(
        "redis://mymaster/0",
        CLIENT_CLASS="django_redis.client.SentinelClient",
        CONNECTION_FACTORY="django_redis.pool.SentinelConnectionFactory",
        SENTINELS=sentinels_of(sentinel)["sentinels"],
        **options,
    )


def sentinel_settings(kind, sentinel, factory):
    if kind == "alias":
        return settings_of_alias(sentinel_cache(sentinel, SOCKET_TIMEOUT=0.2))
    if kind == "factory":
        manager = Sentinel(sentinels_of(sentinel)["sentinels"])
        return settings_of(factory(lambda: manager.slave_for("mymaster")), 1)
    return settings_of(sentinels_of(sentinel, db=1))


@pytest.mark.parametrize("kind", ["mapping", "alias", "factory"])
def test_sentinel_leads_to_the_master(empty, sentinel, factory, kind):
    connection_settings = sentinel_settings(kind, sentinel, factory)
    with client_of(connection_settings) as client, reader_of(connection_settings, block_seconds=1) as reader:
        client.zadd("waiting", {"job": 1})

        assert ask(reader, "BZPOPMIN", "waiting", 1) == [b"waiting", b"job", b"1"]
        started = time.monotonic()
        assert ask(reader, "BZPOPMIN", "waiting", 0.6) is None
        assert time.monotonic() - started > 0.5
        assert (reader.port, reader.db) == (empty.port, 1)
    assert str(connection_settings) == f"sentinel://127.0.0.1:1,127.0.0.1:{sentinel.port}/mymaster/1"


PORT = ("CONFIG", "GET", "port")


@contextmanager
def promoted(sentinel, server, before):
    """Let Sentinel name this server as the master, as after a failover; afterwards the one before."""
    with redis.Redis(port=sentinel.port, protocol=2) as direct:

        def name(port):
            direct.execute_command("SENTINEL", "REMOVE", "mymaster")
            direct.execute_command("SENTINEL", "MONITOR", "mymaster", "127.0.0.1", port, 1)

        name(server.port)
        try:
            yield
        finally:
            name(before.port)


def is_at(reply, server):
    return reply[1] == str(server.port).encode()


@pytest.mark.parametrize("explicitly", [True, False], ids=["connect", "send"])
def test_a_blocking_connection_asks_for_the_master_each_time_it_connects(empty, sentinel, other_server, explicitly):
    with reader_of(settings_of(sentinels_of(sentinel))) as reader:
        reader.connect()
        assert reader.port == empty.port
        with promoted(sentinel, other_server, empty):
            reader.disconnect()
            if explicitly:
                reader.connect()
            assert is_at(ask(reader, *PORT), other_server)


def test_credentials_and_tls_reach_the_master_and_the_sentinels():
    connection_settings = settings_of(
        {
            "sentinels": [["one", 26379]],
            "service": "mymaster",
            "username": "alice",
            "password": "hunter2",
            "ssl": True,
            "ssl_ca_certs": "/ca.pem",
            "sentinel_kwargs": {"password": "hunter3", "ssl": True, "ssl_ca_certs": "/ca2.pem"},
        }
    )
    with reader_of(connection_settings) as reader:
        assert isinstance(reader, SentinelManagedSSLConnection)
        assert (reader.username, reader.password, reader.ca_certs) == ("alice", "hunter2", "/ca.pem")
    asked = connection_settings.service.manager().sentinels[0].connection_pool.make_connection()
    assert isinstance(asked, SSLConnection)
    assert (asked.password, asked.ca_certs, asked.protocol) == ("hunter3", "/ca2.pem", 2)
    assert asked.retry._retries == 0
    assert "hunter" not in f"{connection_settings}{connection_settings!r}"


def test_a_sentinel_alias_keeps_the_credentials_of_both_and_no_time_outs(sentinel):
    cache = sentinel_cache(
        sentinel,
        PASSWORD="hunter2",
        SENTINEL_KWARGS={"password": "hunter3", "socket_timeout": 60},
        CONNECTION_POOL_KWARGS={"ssl": True, "ssl_ca_certs": "/ca.pem"},
    )
    connection_settings = settings_of_alias(cache)
    with reader_of(connection_settings) as reader:
        assert isinstance(reader, SentinelManagedSSLConnection)
        assert (reader.password, reader.ca_certs) == ("hunter2", "/ca.pem")
    asked = connection_settings.service.manager().sentinels[0].connection_pool.make_connection()
    assert (asked.password, asked.socket_timeout) == ("hunter3", 2)


def test_sentinels_listen_to_a_time_out_of_theirs():
    connection_settings = settings_of(
        {"sentinels": [("one", 1)], "service": "s", "sentinel_kwargs": {"socket_timeout": 0.5}}
    )
    asked = connection_settings.service.manager().sentinels[0].connection_pool.make_connection()

    assert (asked.socket_timeout, asked.socket_connect_timeout) == (0.5, 2)


def test_a_rediss_url_in_a_sentinel_alias_means_tls_to_the_master(sentinel):
    cache = {**sentinel_cache(sentinel), "LOCATION": "rediss://mymaster/0"}
    with reader_of(settings_of_alias(cache)) as reader:
        assert isinstance(reader, SentinelManagedSSLConnection)


@pytest.fixture
def broker_behind_sentinel(empty, sentinel, monkeypatch):
    monkeypatch.setattr(masters, "REFRESH_SECONDS", 0.0)
    master_of.cache_clear()
    broker = WorkerBroker(Config(redis=sentinels_of(sentinel)))
    yield broker
    broker.close()
    master_of.cache_clear()


@pytest.mark.parametrize(
    "ask_port",
    [
        lambda broker: broker.redis.execute_one(PORT),
        lambda broker: asyncio.run(broker.async_redis.execute([PORT]))[0],
    ],
    ids=["functions", "coroutines"],
)
def test_a_process_turns_to_the_new_master_while_the_old_one_still_answers(
    broker_behind_sentinel, empty, sentinel, other_server, ask_port
):
    assert is_at(ask_port(broker_behind_sentinel), empty)

    with promoted(sentinel, other_server, empty):
        assert is_at(ask_port(broker_behind_sentinel), other_server)
    assert is_at(ask_port(broker_behind_sentinel), empty)


def test_all_connections_of_a_process_follow_the_one_that_found_another_master(
    broker_behind_sentinel, empty, sentinel, other_server, monkeypatch
):
    broker = broker_behind_sentinel
    blocking = BlockingReader(broker.connection_settings, [b"tokens"], role="worker-wait", block_seconds=0.2)
    assert is_at(broker.redis.execute_one(PORT), empty)
    assert not blocking.wait(0)  # the server has its question
    monkeypatch.setattr(masters, "REFRESH_SECONDS", 60.0)
    broker.redis.execute_one(PORT)  # nobody asks again by himself

    with promoted(sentinel, other_server, empty), reader_of(broker.connection_settings) as reader:
        reader.connect()
        with redis.Redis(port=other_server.port, protocol=2) as direct:
            direct.zadd("tokens", {"work": 0})

        assert blocking.wait(PATIENCE)
        assert is_at(broker.redis.execute_one(PORT), other_server)
    blocking.close()


def test_while_no_sentinel_answers_the_connections_stay(broker_behind_sentinel, monkeypatch):
    client = broker_behind_sentinel.redis
    before = client.execute_one(("CLIENT", "ID"))

    master = master_of(broker_behind_sentinel.connection_settings.service)
    monkeypatch.setattr(master.manager, "discover_master", Mock(side_effect=MasterNotFoundError("nobody answers")))

    assert client.execute_one(("CLIENT", "ID")) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, 'needs a "service"'),
        ({"service": "s"}, 'needs "sentinels"'),
        ({"service": "s", "sentinels": []}, 'needs "sentinels"'),
        ({"service": "s", "sentinels": "host:26379"}, 'needs "sentinels"'),
        ({"service": "s", "sentinels": [("one", 1)], "db": "1"}, "\"db\": '1'"),
        ({"service": "s", "sentinels": [("one", 1)], "passwort": "x"}, "'passwort'. Did you mean 'password'"),
        ({"SERVICE": "s"}, "'SERVICE'. Did you mean 'service'"),
        ({"zzz": 1}, "'zzz'. Known are: sentinels, service"),
        ({"service": "s", "ssl_ca_certs": "/ca.pem"}, 'but TLS is off. Add "ssl": True'),
        ({"service": "s", "sentinels": [("one", 1)], "sentinel_kwargs": "x"}, "not a dictionary"),
        ({"service": "s", "sentinels": [("one", 1)], "sentinel_kwargs": {"color": 1}}, "cannot use .*color"),
    ],
)
def test_what_is_wrong_with_sentinels_is_said(options, message):
    with pytest.raises(ConfigurationError, match=message):
        settings_of(options)


def test_sentinels_that_do_not_know_the_service():
    known = b"*1\r\n*4\r\n$4\r\nname\r\n$4\r\nmain\r\n$5\r\nflags\r\n$6\r\nmaster\r\n"
    with listening(resp({b"SENTINEL": known})) as port, pytest.raises(BrokerRefused) as caught:
        asked({"sentinels": [("127.0.0.1", 1), ("127.0.0.1", port)], "service": "other"})

    assert str(caught.value) == ("The Sentinels do not know the service 'other' in RTQ[\"REDIS\"]. They know: main.")
