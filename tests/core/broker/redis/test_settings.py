"""RTQ["REDIS"] and RTQ["DB"]: where they lead, what is taken over, and what is wrong."""

import ssl
import sys

import pytest
import redis
from django.core.cache import caches
from redis.cluster import RedisCluster
from redis.connection import SSLConnection, UnixDomainSocketConnection

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

SECRET = "hunter2%2Fx"  # "hunter2/x", as a URL has to write it


@pytest.mark.parametrize("db", [None, 3])
def test_a_url_leads_to_its_database_unless_db_names_another(empty, db):
    with client_of(settings_of(f"redis://127.0.0.1:{empty.port}/2", db)) as client:
        client.set("rtq:key", "value")

    with redis.Redis(port=empty.port, db=db or 2) as direct:
        assert direct.get("rtq:key") == b"value"


def test_a_url_without_a_number_takes_the_one_of_db():
    assert settings_of("redis://host", 4).db == 4
    assert settings_of("redis://host").db == 0


def test_tls_of_a_url_is_kept():
    connection_settings = settings_of("rediss://host:6380/1?ssl_ca_certs=/ca.pem&ssl_cert_reqs=optional")
    with reader_of(connection_settings) as reader:
        assert isinstance(reader, SSLConnection)
        assert (reader.ca_certs, reader.cert_reqs) == ("/ca.pem", ssl.CERT_OPTIONAL)
    assert str(connection_settings) == "rediss://host:6380/1"


# Secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"redis://alice:{SECRET}@host:6379/2", "redis://host:6379/2"),
        (f"redis://:{SECRET}@[::1]/2", "redis://[::1]:6379/2"),
        (f"rediss://:{SECRET}@host/2?password={SECRET}", "rediss://host:6379/2"),
        (f"unix:///run/redis.sock?db=2&password={SECRET}", "unix:///run/redis.sock?db=2"),
    ],
)
def test_connection_settings_never_show_the_password(url, shown):
    connection_settings = settings_of(url)

    assert str(connection_settings) == shown
    assert "hunter" not in f"{connection_settings!r} {[connection_settings]}"


@pytest.mark.parametrize(
    "url", ["redis://:hunter2/x@host/0", "redis://:hunter2#x@host/0", ":hunter2@host:6379/0", "hunter2@host"]
)
def test_what_is_said_about_a_bad_url_does_not_show_the_password(url):
    with pytest.raises(ConfigurationError) as caught:
        settings_of(url)

    assert "hunter" not in str(caught.value)
    assert caught.value.__context__ is None  # it would be printed too


# -- an alias of CACHES: its server is shared, but neither its pool nor its database


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


# -- the dotted path of a factory: all is taken over from its client but the pool


def test_a_factory_gives_everything_but_its_pool(empty, factory):
    path = factory(lambda: redis.Redis(port=empty.port, db=5, decode_responses=True, socket_timeout=0.1))
    for db, expected in [(None, 5), (6, 6)]:
        with client_of(settings_of(path, db)) as client:
            client.set("key", "value")
            assert client.get("key") == b"value"
        with redis.Redis(port=empty.port, db=expected) as direct:
            assert direct.exists("key")


def test_a_factory_may_use_a_unix_socket_and_a_pool_that_blocks(empty, factory):
    pool = redis.BlockingConnectionPool(
        connection_class=UnixDomainSocketConnection, path=str(empty.socket_path), timeout=1
    )
    with client_of(settings_of(factory(lambda: redis.Redis(connection_pool=pool)), 2)) as client:
        assert client.ping()


def test_a_factory_may_bring_a_credential_provider(factory):
    provider = redis.UsernamePasswordCredentialProvider("alice", "hunter2")
    connection_settings = settings_of(factory(lambda: redis.Redis(credential_provider=provider)))
    with reader_of(connection_settings) as reader:
        assert reader.credential_provider is provider


def test_arguments_of_none_do_not_replace_our_own(factory):
    connection_settings = settings_of(factory(lambda: redis.Redis(protocol=None, username=None)))

    assert not {"protocol", "username"} & set(connection_settings.arguments)
    with reader_of(connection_settings) as reader:
        assert reader.protocol == 2


# -- what is wrong is said, each time with what to do about it


@pytest.mark.parametrize(
    ("source", "db", "message"),
    [
        ("", None, "type str, or empty, but has to be a URL"),
        (5, None, "type int, or empty, but has to be a URL"),
        ("redis://host", "1", r'RTQ\["DB"\] is \'1\', but has to be the number of a database'),
        ("redis://host", True, r'RTQ\["DB"\] is True, but'),
        ("redis://host", -1, r'RTQ\["DB"\] is -1, but'),
        ("valkey://host", None, "does not start with redis://, rediss://, unix://"),
        ("redis://host/jobs", None, "path is not the number of a database"),
        ("redis://host?db=x", None, "Invalid value for"),
        ("redis://host?color=red", None, "the argument 'color', which Connection of redis-py does not know"),
        ("redis://host?ssl_ca_certs=/ca.pem", None, "'ssl_ca_certs'.* Write rediss:// for TLS."),
        ("rediss://host?ssl_cert_reqs=maybe", None, "cannot use rediss://host:6379/0: .*maybe"),
        ("chache", None, "'chache', .* alias of CACHES .there are: cluster, locmem, native, shard, shared"),
        ("localhost:6379", None, "'localhost:6379', which is neither"),
        ("no.such.module", None, "cannot be imported .* no alias of CACHES .there are: cluster, locmem"),
        ("django_rtq.core.conf.config.DEBUG_REDIS", None, "is a str, but has to be a callable that"),
        ("locmem", 1, "alias 'locmem' of CACHES, but its backend LocMemCache is not one of Redis"),
        ("shard", 1, "alias 'shard' of CACHES, which has no single server"),
        ("cluster", 1, "alias 'cluster' of CACHES, a Redis Cluster. .* write .\"cluster\": "),
        ("broken", 1, "alias 'broken' of CACHES, which cannot be opened: .*no.such.Backend"),
        ("badport", 1, "alias 'badport' of CACHES, whose LOCATION is a URL that cannot be read"),
        ("shared", None, r'RTQ\["DB"\] is not set. cache.clear\(\) is FLUSHDB: .* for example 4\.'),
        ("shared", 3, r'RTQ\["DB"\] is 3, the database of that cache. .* for example 4\.'),
        ("native", 0, r'RTQ\["DB"\] is 0, the database of that cache. .*FLUSHDB'),
    ],
)
def test_what_is_wrong_is_said(source, db, message):
    caches = {
        "cluster": django_redis("redis://host", REDIS_CLIENT_CLASS="redis.cluster.RedisCluster"),
        "locmem": LOCMEM,
        "native": native("redis://host"),
        "shard": django_redis(["redis://one", "redis://two"], CLIENT_CLASS="django_redis.client.ShardClient"),
        "shared": django_redis("redis://host/3"),
        "broken": {"BACKEND": "no.such.Backend"},
        "badport": django_redis("redis://host:http/0"),
    }
    with cache_settings(caches), pytest.raises(ConfigurationError, match=message):
        settings_of(source, db)


def fails():
    raise OSError("no vault")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: 5, "gives a int instead of a redis.Redis"),
        (lambda: RedisCluster.__new__(RedisCluster), 'a Redis Cluster. .* write ."cluster": '),
        (fails, "raised OSError when called"),
        (lambda needed: needed, "raised TypeError when called"),
        (
            lambda: redis.Redis(connection_pool=redis.ConnectionPool(connection_class=lambda: 1)),
            "is not a class. Name the class itself",
        ),
        (lambda: redis.Redis(port="http"), "cannot use redis://localhost:http/0"),
    ],
)
def test_what_is_wrong_with_a_factory_is_said(factory, made, message):
    path = factory(made)
    with pytest.raises(ConfigurationError, match=message):
        settings_of(path)
