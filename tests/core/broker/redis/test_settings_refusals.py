"""What is wrong in RTQ["REDIS"] and RTQ["DB"] is said, each time with what to do about it."""

import pytest
import redis
from redis.cluster import RedisCluster

from django_rtq.exceptions import ConfigurationError
from tests.core.broker.redis.connections import LOCMEM, cache_settings, django_redis, native, settings_of


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
