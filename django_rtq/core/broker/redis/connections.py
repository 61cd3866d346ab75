"""How to reach Redis, and the two kinds of connections: a pool for commands, and one connection that blocks."""

from __future__ import annotations

import inspect
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import starmap
from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.retry import Retry

from django_rtq.core.broker.redis.client import InSettings

SETTING = 'RTQ["REDIS"]'
#: Timeouts of commands and of connecting, unless RTQ sets others.
COMMAND_SECONDS = 5.0
CONNECT_SECONDS = 5.0
#: A connection that was idle for longer is checked with a PING before it is used.
HEALTH_CHECK_SECONDS = 30
#: A safeguard against leaks: above it redis-py raises an error instead of waiting.
MAX_CONNECTIONS = 1000

#: How the kernel watches connections that block: a server that has not answered it for 15 seconds is gone.
KEEPALIVE = {
    getattr(socket, name): value
    for name, value in {
        "TCP_KEEPIDLE": 5,
        "TCP_KEEPINTVL": 5,
        "TCP_KEEPCNT": 2,
        "TCP_USER_TIMEOUT": 15_000,  # ms; for what was sent and not acknowledged
    }.items()
    if hasattr(socket, name)  # Linux has all of them
}

# The arguments of redis-py's connections that name the server and the credentials (beside ssl_…).
_IDENTITY = frozenset(
    "host port path socket_type username password credential_provider redis_connect_func protocol".split()
)


def no_retry() -> Retry:
    """No retries by redis-py: only the caller knows whether a command may be sent twice."""
    return Retry(NoBackoff(), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How to reach Redis: everything needed to make connections of our own.

    It holds the credentials, but neither str() nor repr() shows them.
    """

    connection_class: type[AbstractConnection] = Connection
    db: int = 0
    #: Host, credentials, TLS: arguments of the connection class that the project decides.
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    service: Any = None  # whose master moves, behind Sentinels or in a Cluster: see scale/masters.py
    socket_timeout: float = COMMAND_SECONDS  # seconds until a command raises redis.TimeoutError
    connect_timeout: float = CONNECT_SECONDS
    in_settings: InSettings = field(default=str, repr=False, compare=False)

    def command_pool(self, *, role: str) -> redis.ConnectionPool:
        """A new pool for commands; the caller disconnects it. It never retries by itself."""
        return self._pool(role=role, socket_timeout=self.socket_timeout, health_check_interval=HEALTH_CHECK_SECONDS)

    def blocking_pool(self, *, role: str, block_seconds: float) -> redis.ConnectionPool:
        """A new pool for reads that block for up to ``block_seconds``; the caller disconnects it.

        With Sentinel, every connect() of its connections asks for the current master.
        """
        # No health check: a PING before each read would cost a round trip. The kernel notices a server that is gone.
        return self._pool(
            role=role,
            socket_timeout=block_seconds + self.socket_timeout,
            health_check_interval=0,
            socket_keepalive_options=KEEPALIVE,
        )

    def _pool(self, *, role: str, **options: Any) -> redis.ConnectionPool:
        ours = {
            "db": self.db,
            "client_name": f"rtq:{role}",
            "socket_connect_timeout": self.connect_timeout,
            # A command whose reply got lost may have run. Only its caller knows whether to send it again.
            "retry": no_retry(),
            "decode_responses": False,
            # Replies differ in RESP3, which is the default of redis-py 8 only.
            "protocol": 2,
        }
        accepted = argument_names(self.connection_class)
        if "driver_info" in accepted:
            ours["driver_info"] = _driver_info()
        if "socket_keepalive" in accepted:
            ours["socket_keepalive"] = True
        else:  # a Unix socket
            options.pop("socket_keepalive_options", None)
        own_class: Any = self.connection_class
        make: Any = redis.ConnectionPool
        if self.service is not None:
            make = partial(self.service.pool, patience_seconds=self.socket_timeout)
        elif own_class is UnixDomainSocketConnection:
            own_class = _UnixConnection
        arguments = {**self.arguments, **ours, **options}
        pool: Any = make(connection_class=own_class, max_connections=MAX_CONNECTIONS, **arguments)
        pool.in_settings = self.in_settings
        return cast(redis.ConnectionPool, pool)

    def __str__(self) -> str:
        scheme = "rediss" if issubclass(self.connection_class, SSLConnection) else "redis"
        if self.service is not None:
            return str(self.service.url(",".join(starmap(_address, self.service.addresses)), scheme, self.db))
        if issubclass(self.connection_class, UnixDomainSocketConnection):
            return f"unix://{self.arguments.get('path', '')}?db={self.db}"
        address = _address(self.arguments.get("host", "localhost"), self.arguments.get("port", 6379))
        return f"{scheme}://{address}/{self.db}"


def first_db(db: int | None, otherwise: int | None) -> int:
    """RTQ["DB"], if it is set."""
    return db if db is not None else otherwise or 0


class _UnixConnection(UnixDomainSocketConnection):
    """redis-py before 5.0.7 drops the timeout of a Unix socket, and waits forever."""

    def __init__(self, *, socket_timeout: float, **arguments: Any) -> None:
        super().__init__(socket_timeout=socket_timeout, **arguments)  # type: ignore[no-untyped-call]
        self.socket_timeout = socket_timeout


@cache
def _driver_info() -> Any:
    """What redis-py says of itself to the server: it would read its own version from a file for each connection."""
    return redis.DriverInfo()


def argument_names(connection_class: type) -> frozenset[str]:
    """The arguments that a connection class and its bases accept. They differ between versions of redis-py."""
    return _named_by(*connection_class.__mro__)


def identity_arguments(connection_class: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of another client's connections that are also used for ours.

    Host, credentials and TLS are; timeouts, retries, decoding and what a pool adds for itself are not. Of a class that
    is not redis-py's, all arguments that redis-py does not know are kept.
    """
    accepted = argument_names(connection_class)
    redis_own = _named_by(*(base for base in connection_class.__mro__ if _is_redis_own(base)))

    def is_kept(name: str, value: Any) -> bool:
        if name in _IDENTITY:
            return name in accepted and value is not None  # a protocol of None would override ours
        if name.startswith("ssl_"):
            return name in accepted  # None has a meaning: ssl_cert_reqs=None is "do not check"
        # "connection_pool" is how a Sentinel pool passes itself to its connections.
        return not _is_redis_own(connection_class) and name not in redis_own | {"connection_pool"}

    return {name: value for name, value in arguments.items() if is_kept(name, value)}


@cache
def _named_by(*classes: type) -> frozenset[str]:
    return frozenset(
        name
        for base in classes
        if base is not object and "__init__" in vars(base)  # to read a signature in C takes long
        for name, parameter in inspect.signature(vars(base)["__init__"]).parameters.items()
        if name != "self" and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    )


def _is_redis_own(connection_class: type) -> bool:
    return connection_class.__module__.partition(".")[0] == "redis"


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
