"""Masters behind Sentinels: who they are, and when they are asked."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from redis.exceptions import RedisError
from redis.sentinel import Sentinel

from django_rtq.core.broker.redis.connections import no_retry
from django_rtq.scale.masters import Master, MovingService

#: Timeout of a Sentinel. Sentinels are asked one after the other, so it has to be short.
SENTINEL_SECONDS = 2.0
#: How often a process asks for the master at most, and how long it waits when no Sentinel has answered.
REFRESH_SECONDS = 1.0
REFRESH_RETRY_SECONDS = 30.0


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
