"""Masters behind Sentinels: finds the master, and moves all connections of a process when it changes.

Connections that ask one by one could lead to two masters, of which the former still accepts writes that get lost.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from redis.backoff import NoBackoff
from redis.connection import AbstractConnection
from redis.exceptions import RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelManagedConnection

#: Timeout of a Sentinel. Sentinels are asked one after the other, so it has to be short.
SENTINEL_SECONDS = 2.0
#: How often a process asks for the master at most, and how long it waits when no Sentinel has answered.
REFRESH_SECONDS = 1.0
REFRESH_RETRY_SECONDS = 30.0

Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelService:
    """A master that Sentinels monitor: their addresses, and its name."""

    addresses: tuple[Address, ...]  # of the Sentinels
    service: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)  # of redis.Redis
    min_other_sentinels: int = 0  # replies of a Sentinel that sees fewer others are ignored
    force_master_ip: str | None = None

    def manager(self) -> Sentinel:
        """A new Sentinel client. It connects when it is first used."""
        timeouts = {"socket_timeout": SENTINEL_SECONDS, "socket_connect_timeout": SENTINEL_SECONDS}
        # With the default of redis-py 8 an unreachable Sentinel would be asked eleven times.
        ours = {"retry": no_retry(), "protocol": 2, "decode_responses": False}
        forced = {}
        if self.force_master_ip is not None:  # the first releases of redis-py 5 do not know it
            forced["force_master_ip"] = self.force_master_ip
        return Sentinel(  # type: ignore[no-untyped-call]
            list(self.addresses),
            min_other_sentinels=self.min_other_sentinels,
            sentinel_kwargs={**timeouts, **self.arguments, **ours},
            **forced,
        )


class Master:
    """The master of a service, as this process knows it. Any thread may use it.

    After a planned failover the old master accepts writes for some ten seconds more, until a Sentinel makes it a
    replica, and loses them then. So a process asks for the master once a second, before it sends commands.
    """

    def __init__(self, service: SentinelService) -> None:
        self.manager = service.manager()
        self.address: Address | None = None  # of the last new connection, or what a Sentinel has said since
        self._service = service.service
        self._refresh_at = 0.0  # on time.monotonic()
        self._lock = threading.Lock()

    @property
    def is_due(self) -> bool:
        """Whether refresh() would ask now, which may take seconds."""
        return time.monotonic() >= self._refresh_at

    def refresh(self) -> None:
        """Ask the Sentinels for the master, at most once a second. Keeps the known address while none answers."""
        now = time.monotonic()
        if now < self._refresh_at or not self._lock.acquire(blocking=False):
            return
        try:
            self.address = self.manager.discover_master(self._service)  # type: ignore[no-untyped-call]
            self._refresh_at = now + REFRESH_SECONDS
        except (RedisError, OSError):
            self._refresh_at = now + REFRESH_RETRY_SECONDS
        finally:
            self._lock.release()


@lru_cache(maxsize=8)
def master_of(service: SentinelService) -> Master:
    """The Master that all connections of this process share."""
    return Master(service)


os.register_at_fork(after_in_child=master_of.cache_clear)


class _FollowsMaster(SentinelManagedConnection):
    """Asks Sentinel before commands are sent, and notices when another connection has found a new master.

    redis-py 6.4 and 8.1 ask in connect() only: a connection that was lost and is used again would silently go back to
    the old master, and a new one to localhost.
    """

    master: Master

    def connect_to(self, address: Address) -> None:
        super().connect_to(address)  # type: ignore[no-untyped-call]
        self.master.address = address

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        self.connect()  # type: ignore[no-untyped-call]  # does nothing while connected
        super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call]

    @property
    def is_current(self) -> bool:
        """Whether it may be used: it is not connected yet, or connected to the current master."""
        self.master.refresh()
        socket: Any = self._sock  # typed as None by redis-py
        return socket is None or self.master.address in (None, (self.host, self.port))


def master_connection_class(connection_class: type[AbstractConnection], master: Master) -> type[AbstractConnection]:
    """A connection class that connects to this master."""
    return type(connection_class.__name__, (_FollowsMaster, connection_class), {"master": master})


def is_current(connection: Any) -> bool:
    """False if this connection leads to a former master. Check it before sending a command."""
    return bool(getattr(connection, "is_current", True))


def no_retry() -> Retry:
    """No retries by redis-py: only the caller knows whether a command may be sent twice."""
    return Retry(NoBackoff(), 0)
