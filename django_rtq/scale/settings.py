"""Reads what RTQ["REDIS"] says of several servers: a description of Sentinels or a Cluster, or the URL of a Cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from redis.connection import Connection, SSLConnection
from redis.sentinel import SentinelConnectionPool, SentinelManagedConnection, SentinelManagedSSLConnection

from django_rtq.core.broker.keys import cluster_tag
from django_rtq.core.broker.redis.connections import (
    SETTING,
    ConnectionSettings,
    argument_names,
    first_db,
    identity_arguments,
)
from django_rtq.core.broker.redis.settings import from_url
from django_rtq.core.validation import did_you_mean
from django_rtq.exceptions import ConfigurationError
from django_rtq.scale.masters import ClusterSlot, SentinelService

_CLUSTER_KEYS = ("cluster", "username", "password", "ssl")
_NODE = re.compile(r"(?:\[([^]]+)\]|([^:\[\]\s]+)):(\d{1,5})")
_SENTINEL_KEYS = ("sentinels", "service", "db", "username", "password", "ssl", "sentinel_kwargs")


def from_servers(source: str | Mapping[str, Any], db: int | None, prefix: str) -> ConnectionSettings:
    """How to reach the master among these servers. Raises ConfigurationError."""
    if isinstance(source, str):
        return _from_cluster_url(source, db, prefix)
    return _from_cluster(source, db, prefix) if "cluster" in source else _from_sentinels(source, db)


# -- Sentinels


def _from_sentinels(options: Mapping[str, Any], db: int | None) -> ConnectionSettings:
    connection_class = SentinelManagedSSLConnection if options.get("ssl") else SentinelManagedConnection
    _check_keys(options, _SENTINEL_KEYS)
    service, own_db = options.get("service"), options.get("db", 0)
    if not isinstance(service, str) or not service:
        raise ConfigurationError(f'{SETTING} needs a "service": the name of the master, like "mymaster".')
    if not isinstance(own_db, int) or own_db < 0:
        raise ConfigurationError(f'{SETTING} has "db": {own_db!r}, which is not the number of a database.')
    sentinel_kwargs = options.get("sentinel_kwargs") or {}
    if not isinstance(sentinel_kwargs, Mapping):
        raise ConfigurationError(f'{SETTING} has "sentinel_kwargs" that are not a dictionary.')
    return ConnectionSettings(
        connection_class=connection_class,
        db=first_db(db, own_db),
        arguments=identity_arguments(connection_class, options),
        service=SentinelService(
            addresses=_addresses(options.get("sentinels")), service=service, arguments=dict(sentinel_kwargs)
        ),
    )


def _addresses(sentinels: Any) -> tuple[tuple[str, int], ...]:
    try:
        addresses = tuple((str(host), int(port)) for host, port in sentinels)
    except (TypeError, ValueError):
        addresses = ()
    if not addresses:
        raise ConfigurationError(
            f'{SETTING} needs "sentinels": a list of pairs of host and port, like [("10.0.0.1", 26379)].'
        )
    return addresses


def _check_keys(options: Mapping[str, Any], known: Sequence[str]) -> None:
    tls = {name for name in argument_names(SentinelManagedSSLConnection) if name.startswith("ssl_")}
    names = f" Known are: {', '.join(known)}, ssl_…."
    for key in options:
        if key not in tls.union(known):
            meant = did_you_mean(str(key).lower(), tls.union(known), otherwise=names, quoted=True)
            raise ConfigurationError(f"{SETTING} has an unknown key {key!r}.{meant}")
        if key in tls and not options.get("ssl"):
            raise ConfigurationError(f'{SETTING} has {key!r}, but TLS is off. Add "ssl": True.')


# -- a Cluster


def _from_cluster(options: Mapping[str, Any], db: int | None, prefix: str) -> ConnectionSettings:
    _check_keys(options, _CLUSTER_KEYS)
    if db:
        raise ConfigurationError(
            f"{SETTING} names database {db} of a Cluster, which has database 0 only. Take it out; projects that share "
            'a Cluster need different values of RTQ["PREFIX"].'
        )
    connection_class = SentinelManagedSSLConnection if options.get("ssl") else SentinelManagedConnection
    arguments = identity_arguments(connection_class, options)
    return ConnectionSettings(
        connection_class=connection_class,
        arguments=arguments,
        service=ClusterSlot(
            addresses=_nodes(options["cluster"]),
            key=cluster_tag(prefix).encode(),
            connection_class=SSLConnection if options.get("ssl") else Connection,
            arguments=arguments,
        ),
    )


def _from_cluster_url(url: str, db: int | None, prefix: str) -> ConnectionSettings:
    scheme, _, rest = url.partition("+cluster://")
    place = re.split(r"[/?]", rest, maxsplit=1)[0]
    credentials, at, nodes = place.rpartition("@")
    first = nodes.partition(",")[0]
    of_first = from_url(f"{scheme}://{credentials}{at}{first}{rest[len(place) :]}", None)
    options = {name: value for name, value in of_first.arguments.items() if name not in ("host", "port")}
    options |= {"cluster": nodes.split(","), "ssl": scheme == "rediss"}
    return _from_cluster(options, first_db(db, of_first.db), prefix)


def _nodes(nodes: Any) -> tuple[tuple[str, int], ...]:
    texts = nodes if isinstance(nodes, Sequence) and not isinstance(nodes, str) else ()
    found = [_NODE.fullmatch(node) if isinstance(node, str) else None for node in texts]
    if not found or None in found:
        raise ConfigurationError(
            f'{SETTING} needs "cluster": a list of some nodes as texts of host and port, like ["10.0.0.1:6379"].'
        )
    return tuple((match[1] or match[2], int(match[3])) for match in found if match)


# -- a client that the project made


def behind_sentinels(connection_settings: ConnectionSettings, pool: SentinelConnectionPool) -> ConnectionSettings:
    """How to reach the master that a pool follows."""
    connection_class = connection_settings.connection_class
    if not issubclass(connection_class, SentinelManagedConnection):
        # django-redis makes this of rediss://service/0, and would use the name of the service as a host.
        has_tls = issubclass(connection_class, SSLConnection)
        connection_class = SentinelManagedSSLConnection if has_tls else SentinelManagedConnection
    manager = pool.sentinel_manager
    sentinels = [sentinel.connection_pool.connection_kwargs for sentinel in manager.sentinels]
    arguments = manager.sentinel_kwargs.items()
    return replace(
        connection_settings,
        connection_class=connection_class,
        arguments={key: value for key, value in connection_settings.arguments.items() if key not in ("host", "port")},
        service=SentinelService(
            addresses=tuple((options["host"], int(options["port"])) for options in sentinels),
            service=pool.service_name,
            arguments={key: value for key, value in arguments if not key.startswith(("socket_", "retry"))},
            min_other_sentinels=manager.min_other_sentinels,
            force_master_ip=getattr(manager, "_force_master_ip", None),
        ),
    )
