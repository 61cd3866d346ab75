"""Masters that move, behind Sentinels or in a Cluster: all connections of a process follow one master.

Connections that ask one by one could lead to two masters, of which the former still accepts writes that get lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from redis.connection import AbstractConnection
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.sentinel import SentinelConnectionPool, SentinelManagedConnection

from django_rtq.core.broker.redis.commands import Command, Mending
from django_rtq.core.broker.redis.connections import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingService:
    """A Service of core/broker/redis/connections.py."""

    is_cluster: ClassVar[bool] = False
    master_class: ClassVar[type[Any]]  # a Master, made of the service
    addresses: tuple[Address, ...]  # of servers that know the master
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)  # of connections to these

    def pool(self, **arguments: Any) -> MasterPool:
        """A new pool of connections to the master."""
        return MasterPool(self, **arguments)


class Master:
    """The master of a service, as this process knows it. Any thread may use it."""

    def __init__(self, manager: Any, name: str) -> None:
        #: Has discover_master(), which redis-py's pool calls for each new connection, with the name.
        self.manager, self.name = manager, name
        self.address: Address | None = None  # of the last new connection, or what was heard since
        self.asked: Address | None = None  # the last server that was asked for the master, if that may be a wrong one

    @property
    def is_due(self) -> bool:
        """Whether refresh() would ask now, which may take seconds."""
        return False

    def refresh(self) -> None:
        """Ask for the master, if it is time for that. Keeps the known address while nobody answers."""

    def forget(self, address: Address) -> None:
        """A connection to this address was lost, or there is none."""

    def instead_of(self, address: Address) -> Address | None:
        """Where the master is now, after this address did not answer; None: nobody knows of another one."""
        return None

    def unknown_service(self, text: str) -> str | None:
        """What is wrong in RTQ["REDIS"], after an error with this text; None: nothing that is certain."""
        return None

    def has_moved(self, error: Any) -> bool:
        """Whether this error of a command says that nothing was executed, as the master moves, or has moved."""
        return False

    def resend(
        self, commands: Sequence[Command], replies: list[Any], seconds: float, complete: Callable[..., Mending]
    ) -> Mending:
        """Send again what was not executed, for some seconds, and return all replies; `complete` is called with these
        after each time."""
        yield from ()
        return replies


@lru_cache(maxsize=8)
def master_of(service: MovingService) -> Master:
    """The Master that all connections of this process share."""
    master: Master = service.master_class(service)
    return master


os.register_at_fork(after_in_child=master_of.cache_clear)


class MasterPool(SentinelConnectionPool):
    """Connections to a master that moves."""

    def __init__(
        self,
        service: MovingService,
        *,
        patience_seconds: float,
        connection_class: type[AbstractConnection],
        **arguments: Any,
    ) -> None:
        self.master = master_of(service)
        #: For how long commands are sent again that were not executed, because the master moves.
        self.patience_seconds = patience_seconds
        super().__init__(  # type: ignore[no-untyped-call]
            self.master.name,
            self.master.manager,
            is_master=True,
            connection_class=type(
                connection_class.__name__, (_FollowsMaster, connection_class), {"master": self.master}
            ),
            **arguments,
        )


class _FollowsMaster(SentinelManagedConnection):
    """Looks for the master before commands are sent, and notices when another connection has found a new one.

    redis-py 6.4 and 8.1 ask in connect() only: a connection that was lost and is used again would silently go back to
    the old master, and a new one to localhost.
    """

    master: Master
    _connected_to: Address | None = None  # or to where it was

    def connect_to(self, address: Address) -> None:
        try:
            super().connect_to(address)  # type: ignore[no-untyped-call]
        except AuthenticationError:
            raise
        except (RedisConnectionError, RedisTimeoutError, OSError):
            other = self.master.instead_of(address)
            if other is None:
                raise
            super().connect_to(other)  # type: ignore[no-untyped-call]
        self.master.address = self._connected_to = (self.host, self.port)

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if not self._sock:  # connect() would do nothing, in four calls
            self.connect()  # type: ignore[no-untyped-call]
        super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call]

    @property
    def is_current(self) -> bool:
        """Whether it may be used: it is not connected yet, or connected to the current master."""
        self.master.refresh()
        socket: Any = self._sock  # typed as None by redis-py
        return socket is None or self.master.address in (None, self._connected_to)
