"""Reads RTQ["REDIS"] and RTQ["DB"] into a ConnectionSettings.

RTQ["REDIS"] is one of
1. a URL: redis://, rediss:// or unix://
2. an alias of CACHES: the same server, but another pool and another database
3. a mapping that describes Sentinels, or a Cluster; a Cluster has URLs, too: redis+cluster:// or rediss+cluster://
4. the dotted path of a callable that returns a redis.Redis

No connection is opened here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.core.cache import caches
from redis.connection import Connection, parse_url
from redis.exceptions import RedisError

from django_rtq.core.broker.redis.connections import (
    SETTING,
    ConnectionSettings,
    argument_names,
    first_db,
    identity_arguments,
)
from django_rtq.core.conf.config import Config
from django_rtq.core.extension import required
from django_rtq.exceptions import ConfigurationError

_SCHEMES = ("redis://", "rediss://", "unix://")
# Arguments of pools, not of connections. A URL that others use too may carry them.
_POOL_ARGUMENTS = {"max_connections", "timeout"}
_CLUSTER_SCHEMES = ("redis+cluster://", "rediss+cluster://")


def read_connection_settings(config: Config) -> ConnectionSettings:
    """Turn ``config.redis`` and ``config.db`` into a ConnectionSettings. Raises ConfigurationError."""
    source: Any = config.redis  # not checked yet
    db: Any = config.db
    if db is not None and (not isinstance(db, int) or isinstance(db, bool) or db < 0):
        raise ConfigurationError(f'RTQ["DB"] is {db!r}, but has to be the number of a database, 0 or more.')
    if isinstance(source, Mapping) or (isinstance(source, str) and source.startswith(_CLUSTER_SCHEMES)):
        connection_settings: ConnectionSettings = required("servers").from_servers(source, db, config.prefix)
    elif isinstance(source, str) and source:
        connection_settings = _from_text(source, db)
    else:
        raise ConfigurationError(
            f"{SETTING} is of type {type(source).__name__}, or empty, but has to be a URL, an alias of "
            "CACHES, a description of Sentinels or of a Cluster, or the dotted path of a factory."
        )
    try:  # redis-py checks most arguments only when it makes a connection: better now than in a worker
        connection_settings.command_pool(role="check").make_connection()
    except (TypeError, ValueError, RedisError) as error:
        raise ConfigurationError(f"{SETTING}: redis-py cannot use {connection_settings}: {error}") from error
    return connection_settings


def _from_text(text: str, db: int | None) -> ConnectionSettings:
    if "://" in text:
        return from_url(text, db)
    from django_rtq.core.broker.redis.clients_of_project import from_alias, from_factory  # most projects have a URL

    if text in list(caches):
        return from_alias(text, db)
    if "." in text and all(part.isidentifier() for part in text.split(".")):
        return from_factory(text, db)
    shown = "a text with an @ in it" if "@" in text else repr(text)  # part of a URL may hold a password
    raise ConfigurationError(
        f"{SETTING} is {shown}, which is neither a URL, nor an alias of CACHES (there are: "
        f"{', '.join(caches)}), nor the dotted path of a factory."
    )


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
