"""What connections to a master that moves, behind Sentinels or in a Cluster, have beside others."""

from __future__ import annotations

from typing import Any, Protocol

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

Address = tuple[str, int]

PAUSE_SECONDS = 0.05  # between two blocking reads while the master moves


class WrongAddress(RedisConnectionError):
    """RTQ["REDIS"] leads to something else than it says, and waiting does not help. The message says the cure."""


class Service(Protocol):
    """What has a master that moves."""

    @property
    def is_cluster(self) -> bool:
        """Whether the master has a slot of a Cluster, and no database."""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Some servers that know the master."""

    def url(self, addresses: str, scheme: str, db: int) -> str:
        """Where it is, without credentials."""

    def pool(self, **arguments: Any) -> redis.ConnectionPool:
        """A new pool of connections, whose `master` is a Master of scale/masters.py."""


def is_current(connection: Any) -> bool:
    """False if this connection leads to a former master. Check it before sending a command."""
    return bool(getattr(connection, "is_current", True))


def note_loss(connection: Any) -> None:
    """This connection was lost: if its master may have moved, the next one looks for it."""
    master = getattr(connection, "master", None)
    if master is not None:
        master.forget((connection.host, connection.port))


def has_moved(connections: Any, error: Any) -> bool:
    """Whether this error, of a connection or of one of a pool, says that nothing was executed, as the master moves."""
    master = getattr(connections, "master", None)
    return master is not None and master.has_moved(error)


def no_retry() -> Retry:
    """No retries by redis-py: only the caller knows whether a command may be sent twice."""
    return Retry(NoBackoff(), 0)
