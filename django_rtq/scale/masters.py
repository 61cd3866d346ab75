"""Masters that move, behind Sentinels or in a Cluster: all connections of a process follow one master.

Connections that ask one by one could lead to two masters, of which the former still accepts writes that get lost.

In a Cluster all keys of a project lie in one slot, so its master moves with the slot (D141). Only what was not
executed is sent again. A node that is asked for the wrong slot executes nothing: MOVED, the slot is elsewhere. While a
slot moves key by key, neither does a node that has not all of the keys: ASK, TRYAGAIN. We never say ASKING, so nothing
runs on the new master before the slot is there as a whole.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from redis.connection import AbstractConnection, Connection
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    MovedError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.sentinel import Sentinel, SentinelConnectionPool, SentinelManagedConnection

from django_rtq.core.broker.redis.client import WrongAddress
from django_rtq.core.broker.redis.commands import Command, Mending, Pause, with_dependent
from django_rtq.core.broker.redis.connections import no_retry

Address = tuple[str, int]

#: Timeout of a Sentinel. Sentinels are asked one after the other, so it has to be short.
SENTINEL_SECONDS = 2.0
#: How often a process asks for the master at most, and how long it waits when no Sentinel has answered.
REFRESH_SECONDS = 1.0
REFRESH_RETRY_SECONDS = 30.0
#: Timeout of a node that is asked for the slots, and of asking them all.
NODE_SECONDS = 2.0
SEARCH_SECONDS = 5.0
#: Between two tries while the slot moves: each is twice as long as the one before.
SHORT_PAUSE_SECONDS, LONG_PAUSE_SECONDS = 0.02, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingService:
    """What has a master that moves. Subclasses have url(): where it is, without credentials."""

    is_cluster: ClassVar[bool] = False  # whether the master has a slot of a Cluster, and no database
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


# -- behind Sentinels


class SentinelMaster(Master):
    """The master of a service.

    After a planned failover the old master accepts writes for some ten seconds more, until a Sentinel makes it a
    replica, and loses them then. So a process asks for the master once a second, before it sends commands.
    """

    def __init__(self, service: SentinelService) -> None:
        super().__init__(service.manager(), service.service)
        self._refresh_at = 0.0  # on time.monotonic()
        self._lock = threading.Lock()

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._refresh_at

    def refresh(self) -> None:
        """Ask the Sentinels for the master, at most once a second. Keeps the known address while none answers."""
        now = time.monotonic()
        if now < self._refresh_at or not self._lock.acquire(blocking=False):
            return
        try:
            self.address = self.manager.discover_master(self.name)
            self._refresh_at = now + REFRESH_SECONDS
        except (RedisError, OSError):
            self._refresh_at = now + REFRESH_RETRY_SECONDS
        finally:
            self._lock.release()

    def unknown_service(self, text: str) -> str | None:
        if text.count(" - ") >= len(self.manager.sentinels):
            return None  # none has answered
        for sentinel in self.manager.sentinels:
            try:
                names = sentinel.sentinel_masters()
            except (RedisError, OSError):
                continue
            if self.name in names:
                return None
            known = ", ".join(sorted(names)) or "none"
            return f'The Sentinels do not know the service {self.name!r} in RTQ["REDIS"]. They know: {known}.'
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelService(MovingService):
    """A master that Sentinels monitor: their addresses, and its name."""

    master_class = SentinelMaster
    service: str
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

    def url(self, addresses: str, scheme: str, db: int) -> str:
        """The Sentinels, the name of the service, and the database."""
        return f"sentinel://{addresses}/{self.service}/{db}"


# -- in a Cluster


class SlotMaster(Master):
    """The master of a slot."""

    def __init__(self, slot: ClusterSlot) -> None:
        super().__init__(self, "")
        self._slot = slot
        self._number = key_slot(slot.key)
        self._nodes: list[Address] = []  # as the last reply named them
        self._lost: Address | None = None  # to where the last connection was lost

    def discover_master(self, service: str) -> Address:
        """The address of the master. Raises RedisError if no node knows it."""
        return self.address or self._find()

    def forget(self, address: Address) -> None:
        self._lost = address
        if self.address == address:
            self.address = None

    def instead_of(self, address: Address) -> Address | None:
        self.forget(address)
        try:
            found = self._find()
        except (RedisError, OSError):
            return None
        return None if found == address else found

    def has_moved(self, error: Any) -> bool:
        if isinstance(error, ResponseError) and str(error).startswith("UNBLOCKED"):
            self.address = None  # the master that held a blocking read is a replica now
            return True
        if not self._is_unserved(error):
            return False
        if isinstance(error, MovedError):
            self._follow(error)
        return not isinstance(error, ClusterDownError)

    def _is_unserved(self, error: Any) -> bool:
        if isinstance(error, AskError):  # and MovedError
            return bool(error.slot_id == self._number)
        return isinstance(error, TryAgainError | ClusterDownError)

    def resend(
        self, commands: Sequence[Command], replies: list[Any], seconds: float, complete: Callable[..., Mending]
    ) -> Mending:
        until, pause, has_asked = time.monotonic() + seconds, 0.0, False
        while unserved := [i for i, reply in enumerate(replies) if self._is_unserved(reply)]:
            error = replies[unserved[0]]
            if isinstance(error, ClusterDownError):
                if has_asked or self.address is None or self.instead_of(self.address) is None:
                    break  # no other node names another master
                has_asked = True
            elif time.monotonic() >= until:
                break
            else:
                self.has_moved(error)
                if pause or not isinstance(error, MovedError):  # the first time it has moved just now
                    yield Pause(max(pause, SHORT_PAUSE_SECONDS))
                pause = min(LONG_PAUSE_SECONDS, max(2 * pause, SHORT_PAUSE_SECONDS))
            again = with_dependent(unserved, commands)
            for i, reply in zip(again, (yield [commands[i] for i in again]), strict=True):
                replies[i] = reply
            replies = yield from complete(commands, replies)
        return replies

    def _follow(self, error: MovedError) -> None:
        host, port = str(error.host), int(error.port)
        if host in ("", "?"):  # "": the one that was asked, with another port
            self.address = (self.address[0], port) if host == "" and self.address else None
        else:
            self.address = (host, port)

    def _find(self) -> Address:
        """Ask the nodes for the master, the one that was lost after all others."""
        nodes = dict.fromkeys([*self._nodes, *self._slot.addresses])
        until = time.monotonic() + SEARCH_SECONDS
        error: RedisError | OSError | None = None
        for node in sorted(nodes, key=lambda node: node == self._lost):
            if time.monotonic() >= until:
                break
            try:
                slots = self._ask(node)
            except AuthenticationError:
                raise
            except (RedisConnectionError, RedisTimeoutError, OSError) as caught:
                error = error or caught
                continue
            self._nodes = [_address(server, node) for _, _, *servers in slots for server in servers]
            for first, end, master, *_ in slots:
                if first <= self._number <= end:
                    self.address = _address(master, node)
                    return self.address
            error = ClusterDownError(f"no node of the Cluster has slot {self._number}")
        raise error or RedisConnectionError("no node of the Cluster answers")

    def _ask(self, node: Address) -> Any:
        self.asked = node
        timeouts = {"socket_timeout": NODE_SECONDS, "socket_connect_timeout": NODE_SECONDS}
        ours = {"host": node[0], "port": node[1], "retry": no_retry(), "protocol": 2, "decode_responses": False}
        new: Any = self._slot.connection_class
        connection = new(**self._slot.arguments, **timeouts, **ours)
        try:
            connection.connect()
            connection.send_command("CLUSTER", "SLOTS")
            return connection.read_response()
        except ResponseError as error:
            if "cluster support disabled" not in str(error):
                raise
            host, port = node
            raise WrongAddress(
                f'RTQ["REDIS"] names a Cluster, but {host}:{port} is a single server. Write "redis://{host}:{port}/0".'
            ) from error
        finally:
            connection.disconnect()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSlot(MovingService):
    """The slot of a key in a Cluster, and the addresses of some nodes."""

    is_cluster = True
    master_class = SlotMaster
    key: bytes
    connection_class: type[AbstractConnection] = Connection

    def url(self, addresses: str, scheme: str, db: int) -> str:
        """The URL of the Cluster."""
        return f"{scheme}+cluster://{addresses}"


def _address(server: Any, asked: Address) -> Address:
    """The address of a server in the reply to CLUSTER SLOTS: no host is that of the node that was asked."""
    host, port, *rest = server
    if host == b"?":  # it should have a name, and has none
        more = rest[1] if len(rest) > 1 else []
        host = dict(zip(more[::2], more[1::2], strict=False)).get(b"ip")
    return (host.decode() if host else asked[0]), int(port)
