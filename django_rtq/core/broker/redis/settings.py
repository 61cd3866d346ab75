"""Reads RTQ["REDIS"] and RTQ["DB"] into a ConnectionSettings.

RTQ["REDIS"] is one of
1. a URL: redis://, rediss:// or unix://
2. an alias of CACHES: the same server, but another pool and another database
3. a mapping that describes Sentinels, or a Cluster; a Cluster has URLs, too: redis+cluster:// or rediss+cluster://
4. the dotted path of a callable that returns a redis.Redis

No connection is opened here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

import redis
from django.core.cache import InvalidCacheBackendError, caches
from django.core.cache.backends.redis import RedisCache as NativeRedisCache
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string
from redis.cluster import RedisCluster
from redis.connection import Connection, parse_url
from redis.exceptions import RedisClusterException, RedisError
from redis.sentinel import SentinelConnectionPool

from django_rtq.core.broker.redis.connections import ConnectionSettings, argument_names, identity_arguments
from django_rtq.core.conf.config import Config
from django_rtq.core.extension import required
from django_rtq.exceptions import ConfigurationError

SETTING = 'RTQ["REDIS"]'
_SCHEMES = ("redis://", "rediss://", "unix://")
# Arguments of pools, not of connections. A URL that others use too may carry them.
_POOL_ARGUMENTS = {"max_connections", "timeout"}
_CLUSTER_SCHEMES = ("redis+cluster://", "rediss+cluster://")
_UNREAD_CLUSTER = 'a Redis Cluster. Only addresses can be read from there: write {"cluster": ["host:port", …]} instead.'


def read_connection_settings(config: Config) -> ConnectionSettings:
    """Turn ``config.redis`` and ``config.db`` into a ConnectionSettings. Raises ConfigurationError."""
    source: Any = config.redis  # not checked yet
    db: Any = config.db
    if db is not None and (not isinstance(db, int) or isinstance(db, bool) or db < 0):
        raise ConfigurationError(f'RTQ["DB"] is {db!r}, but has to be the number of a database, 0 or more.')
    if isinstance(source, Mapping) or (isinstance(source, str) and source.startswith(_CLUSTER_SCHEMES)):
        connection_settings: ConnectionSettings = required("servers")(source, db, config.prefix)
    elif isinstance(source, str) and source:
        connection_settings = _from_text(source, db)
    else:
        raise ConfigurationError(
            f"{SETTING} is of type {type(source).__name__}, or empty, but has to be a URL, an alias of "
            "CACHES, a description of Sentinels or of a Cluster, or the dotted path of a factory."
        )
    _check_arguments(connection_settings)
    return connection_settings


def _from_text(text: str, db: int | None) -> ConnectionSettings:
    if "://" in text:
        return from_url(text, db)
    if text in list(caches):
        return _from_alias(text, db)
    if "." in text and all(part.isidentifier() for part in text.split(".")):
        return _from_factory(text, db)
    shown = "a text with an @ in it" if "@" in text else repr(text)  # part of a URL may hold a password
    raise ConfigurationError(
        f"{SETTING} is {shown}, which is neither a URL, nor an alias of CACHES (there are: "
        f"{', '.join(caches)}), nor the dotted path of a factory."
    )


def _check_arguments(connection_settings: ConnectionSettings) -> None:
    # redis-py checks most arguments only when it makes a connection: better now than in a worker.
    try:
        connection_settings.blocking_connection(role="check", block_seconds=0)
    except (TypeError, ValueError, RedisError) as error:
        raise ConfigurationError(f"{SETTING}: redis-py cannot use {connection_settings}: {error}") from error


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


# 1. A URL


def from_url(url: str, db: int | None) -> ConnectionSettings:
    """How to reach the server of a URL. Raises ConfigurationError."""
    options = _parse_url(url)
    connection_class = options.pop("connection_class", Connection)
    url_db = options.pop("db", None)
    if url_db is None and not url.startswith("unix") and urlsplit(url).path.strip("/"):
        # redis-py would silently use database 0.
        raise ConfigurationError(f"{SETTING} is a URL whose path is not the number of a database.")
    for name in options:
        if name not in argument_names(connection_class) | _POOL_ARGUMENTS:
            cure = "Write rediss:// for TLS." if name.startswith("ssl_") else "Take it out."
            raise ConfigurationError(
                f"{SETTING} is a URL with the argument {name!r}, which {connection_class.__name__} of "
                f"redis-py does not know. {cure}"
            )
    return ConnectionSettings(
        connection_class=connection_class,
        db=first_db(db, url_db),
        arguments=identity_arguments(connection_class, options),
    )


def _parse_url(url: str) -> dict[str, Any]:
    if not url.startswith(_SCHEMES):
        raise ConfigurationError(f"{SETTING} is a URL, but does not start with {', '.join(_SCHEMES)}.")
    try:
        return dict(parse_url(url))  # type: ignore[no-untyped-call]
    except ValueError as error:
        # What does not parse as a port is most often part of a password, which must not be logged.
        reason = str(error) if str(error).startswith("Invalid value for") else "its parts make no sense."
    raise ConfigurationError(
        f"{SETTING} is a URL that cannot be read: {reason} If the password holds one of : / ? # @, "
        "write it as urllib.parse.quote(password, safe='') gives it."
    )


# 2. An alias


def _from_alias(alias: str, db: int | None) -> ConnectionSettings:
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


# 4. A factory


def _from_factory(path: str, db: int | None) -> ConnectionSettings:
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


# A client that the project made


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
    return cast(ConnectionSettings, required("sentinels")(connection_settings, pool))


def first_db(db: int | None, otherwise: int | None) -> int:
    """RTQ["DB"], if it is set."""
    return db if db is not None else otherwise or 0
