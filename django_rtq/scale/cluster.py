"""A Redis Cluster: all keys of a project lie in one slot, so it is a master that moves with the slot (D141).

Only what was not executed is sent again. A node that is asked for the wrong slot executes nothing: MOVED, the slot is
elsewhere. While a slot moves key by key, neither does a node that has not all of the keys: ASK, TRYAGAIN. We never say
ASKING, so nothing runs on the new master before the slot is there as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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

from django_rtq.core.broker.redis.client import WrongAddress
from django_rtq.core.broker.redis.commands import Command, Mending, Pause, with_dependent
from django_rtq.core.broker.redis.connections import Address, no_retry
from django_rtq.scale.masters import Master, MovingService

#: Timeout of a node that is asked for the slots, and of asking them all.
NODE_SECONDS = 2.0
SEARCH_SECONDS = 5.0
#: Between two tries while the slot moves: each is twice as long as the one before.
SHORT_PAUSE_SECONDS, LONG_PAUSE_SECONDS = 0.02, 0.1


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
