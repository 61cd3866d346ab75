"""Reads RTQ["REDIS"] if it names a client of the project: the alias of a cache, or a factory."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, cast

import redis
from django.core.cache import InvalidCacheBackendError, caches
from django.core.cache.backends.redis import RedisCache as NativeRedisCache
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string
from redis.cluster import RedisCluster
from redis.exceptions import RedisClusterException, RedisError
from redis.sentinel import SentinelConnectionPool

from django_rtq.core.broker.redis.connections import SETTING, ConnectionSettings, first_db, identity_arguments
from django_rtq.core.extension import required
from django_rtq.exceptions import ConfigurationError

_UNREAD_CLUSTER = 'a Redis Cluster. Only addresses can be read from there: write {"cluster": ["host:port", …]} instead.'


def caches_in(connection_settings: ConnectionSettings) -> list[str]:
    """The aliases of CACHES in the same database as the queues: their cache.clear() would delete all jobs."""
    aliases = []
    for alias in caches:
        try:
            client = _client_of_cache(caches[alias])
            shared = client is not None and _place(_from_client(client, alias)) == _place(connection_settings)
        except Exception:  # noqa: BLE001 - a cache that cannot be opened deletes nothing
            continue
        if shared:
            aliases.append(alias)
    return aliases


def _place(connection_settings: ConnectionSettings) -> str:
    return str(connection_settings).replace("//127.0.0.1:", "//localhost:").replace("rediss:", "redis:")


def from_alias(alias: str, db: int | None) -> ConnectionSettings:
    """How to reach the server of an alias of CACHES. Raises ConfigurationError."""
    name = f"{SETTING} is the alias {alias!r} of CACHES"
    try:
        client = _client_of_cache(caches[alias])
    except RedisClusterException as error:
        raise ConfigurationError(f"{name}, {_UNREAD_CLUSTER}") from error
    except NotImplementedError as error:
        raise ConfigurationError(
            f"{name}, which has no single server: its keys are spread over several. "
            "Name an alias with one server, or write its URL."
        ) from error
    except ValueError:  # the message may contain part of a password
        raise ConfigurationError(f"{name}, whose LOCATION is a URL that cannot be read.") from None
    except (InvalidCacheBackendError, ImproperlyConfigured, ImportError, TypeError, RedisError) as error:
        raise ConfigurationError(f"{name}, which cannot be opened: {error}") from error
    if client is None:
        raise ConfigurationError(
            f"{name}, but its backend {type(caches[alias]).__name__} is not one of Redis. Name an alias of "
            "django-redis or of Django's own RedisCache, or write a URL."
        )
    of_cache = _from_client(client, name)
    if db is None or db == of_cache.db:
        wrong = 'RTQ["DB"] is not set' if db is None else f'RTQ["DB"] is {db}, the database of that cache'
        raise ConfigurationError(
            f"{name}, and {wrong}. cache.clear() is FLUSHDB: it would delete all jobs along with the cache, "
            f'which is in database {of_cache.db}. Set RTQ["DB"] to another number, for example {of_cache.db + 1}.'
        )
    return replace(of_cache, db=db)


def _client_of_cache(cache: Any) -> Any:
    """The client that the cache writes with, or None if the cache is not in Redis."""
    if isinstance(cache, NativeRedisCache):
        return cache._cache.get_client(None, write=True)
    django_redis = sys.modules.get("django_redis.cache")  # who has a cache of it has imported it
    if django_redis is not None and isinstance(cache, django_redis.RedisCache):
        return cache.client.get_client(write=True)
    return None


def from_factory(path: str, db: int | None) -> ConnectionSettings:
    """How to reach the server of the client that a function of the project makes. Raises ConfigurationError."""
    name = f'{SETTING} is "{path}"'
    try:
        factory = import_string(path)
    except ImportError as error:
        raise ConfigurationError(
            f"{name}, which cannot be imported ({error}) and is no alias of CACHES (there are: {', '.join(caches)})."
        ) from error
    if not callable(factory):
        raise ConfigurationError(
            f"{name}, which is a {type(factory).__name__}, but has to be a callable that gives a redis.Redis."
        )
    try:
        client = factory()
    except Exception as error:
        raise ConfigurationError(f"{name}, which raised {type(error).__name__} when called.") from error
    connection_settings = _from_client(client, name)
    return replace(connection_settings, db=first_db(db, connection_settings.db))


def _from_client(client: Any, name: str) -> ConnectionSettings:
    if isinstance(client, RedisCluster):
        raise ConfigurationError(f"{name}, {_UNREAD_CLUSTER}")
    if not isinstance(client, redis.Redis):
        raise ConfigurationError(f"{name}, which gives a {type(client).__name__} instead of a redis.Redis.")
    pool = client.connection_pool
    if not isinstance(pool.connection_class, type):
        raise ConfigurationError(
            f"{name}, whose connection_class {pool.connection_class!r} is not a class. Name the class itself."
        )
    connection_settings = ConnectionSettings(
        connection_class=pool.connection_class,
        db=int(pool.connection_kwargs.get("db") or 0),
        arguments=identity_arguments(pool.connection_class, pool.connection_kwargs),
    )
    if not isinstance(pool, SentinelConnectionPool):
        return connection_settings
    return cast(ConnectionSettings, required("servers").behind_sentinels(connection_settings, pool))
