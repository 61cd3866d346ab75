"""An alias of CACHES in RTQ["REDIS"]: its server is shared, but neither its pool nor its database."""

import ssl
import sys

import pytest
from django.core.cache import caches

from django_rtq.exceptions import ConfigurationError
from tests.core.broker.redis.connections import (
    BACKENDS,
    LOCMEM,
    ask,
    cache_settings,
    client_of,
    django_redis,
    django_redis_pool,
    native,
    reader_of,
    settings_of,
    settings_of_alias,
)


@BACKENDS
def test_an_alias_that_decodes_still_yields_bytes(empty, backend):
    connection_settings = settings_of_alias(backend(empty.url, decode_responses=True))
    with client_of(connection_settings) as client, reader_of(connection_settings) as reader:
        client.set("key", "värde")

        assert client.get("key") == "värde".encode()
        assert ask(reader, "GET", "key") == "värde".encode()


def test_two_aliases_of_one_url_are_both_good(empty):
    # django-redis gives the second alias the pool of the first, with the options of the first.
    cache = {
        "default": django_redis(empty.url, SOCKET_TIMEOUT=0.2),
        "shared": django_redis_pool(empty.url, decode_responses=True),
    }
    with cache_settings(cache):
        found = [settings_of("default", 1), settings_of("shared", 2)]
    for connection_settings in found:
        with client_of(connection_settings) as client:
            client.set("key", connection_settings.db)
            assert client.get("key") == str(connection_settings.db).encode()
            assert client.connection_pool.make_connection().socket_timeout == 5


def test_the_pool_is_never_the_one_of_the_cache(empty):
    with cache_settings({"default": django_redis(empty.url)}):
        connection_settings = settings_of("default", 1)
        theirs = caches["default"].client.get_client().connection_pool
        ours = connection_settings.command_pool(role="test")

    assert ours is not theirs
    assert theirs.connection_kwargs["db"] == 0
    assert connection_settings.command_pool(role="test") is not ours


@pytest.mark.parametrize("backend", [django_redis, native])
def test_of_a_list_of_replicas_the_first_is_taken(backend):
    locations = ["redis://primary:6379/0", "redis://replica-1:6379/0", "redis://replica-2:6379/0"]

    assert {str(settings_of_alias(backend(locations))) for _ in range(10)} == {"redis://primary:6379/1"}


@BACKENDS
def test_credentials_and_tls_of_an_alias_are_kept(backend):
    cache = backend(
        "rediss://alice:hunter2%2Fx@host:6380/0",
        ssl_ca_certs="/ca.pem",
        ssl_cert_reqs=None,
        ssl_check_hostname=False,
    )
    with reader_of(settings_of_alias(cache)) as reader:
        assert (reader.host, reader.port, reader.db) == ("host", 6380, 1)
        assert (reader.username, reader.password) == ("alice", "hunter2/x")
        assert (reader.ca_certs, reader.cert_reqs) == ("/ca.pem", ssl.CERT_NONE)


def test_options_of_django_redis_that_hold_credentials_are_kept():
    connection_settings = settings_of_alias(django_redis("redis://host/0", USERNAME="alice", PASSWORD="hunter2"))
    with reader_of(connection_settings) as reader:
        assert (reader.username, reader.password) == ("alice", "hunter2")


def test_an_alias_with_a_connection_class_of_its_own_keeps_it():
    fakeredis = pytest.importorskip("fakeredis")
    fake = fakeredis.FakeServer()
    cache = django_redis_pool("redis://host/0", connection_class=fakeredis.FakeRedisConnection, server=fake)
    with client_of(settings_of_alias(cache)) as client:
        client.set("key", "value")

    assert fakeredis.FakeRedis(server=fake, db=1).get("key") == b"value"


def test_the_native_backend_does_not_need_django_redis(empty, monkeypatch):
    monkeypatch.setitem(sys.modules, "django_redis.cache", None)

    assert settings_of_alias(native(empty.url)).db == 1
    with pytest.raises(ConfigurationError, match="LocMemCache is not one of Redis"):
        settings_of_alias(LOCMEM)
