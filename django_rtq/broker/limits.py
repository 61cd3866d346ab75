"""Changes the limits of queues and clients that claims keep to: see lua/lib/limits.lua."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django_rtq.broker.keys import Keys
from django_rtq.broker.redis.client import RedisClient
from django_rtq.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.conf import Config

_MAX_RUNNING = "max_running="
_UNLIMITED = "unlimited"


class LimitStore:
    """Writes limits to Redis. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, redis: RedisClient, keys: Keys, config: Config) -> None:
        self._redis = redis
        self._keys = keys
        self._config = config

    def change(self, queue: str, sources: Mapping[str, str]) -> None:
        """Write into the key `limit_sources`; "" deletes. Then let those clients go on that may."""
        keys = self._keys.of(queue)
        arguments = [text for source in sources.items() for text in source]
        if not self._redis.execute_one(SCRIPTS["set_limits"].call(keys, arguments), resend=True):
            return  # no client is blocked
        clients = self._redis.execute_one(("HKEYS", keys.blocked), resend=True)
        parts = [clients[start : start + AT_ONCE] for start in range(0, len(clients), AT_ONCE)]
        self._redis.execute([SCRIPTS["check_blocked"].call(keys, part) for part in parts], resend=True)

    def apply_settings(self, queues: Iterable[str]) -> None:
        """Store the limits of RTQ["QUEUES"], if others are stored. Each worker process does so when it starts."""
        names = list(queues)
        replies = self._redis.execute([("HGETALL", self._keys.of(name).limit_sources) for name in names], resend=True)
        for name, reply in zip(names, replies, strict=True):
            stored = {source.decode(): text.decode() for source, text in zip(reply[::2], reply[1::2], strict=True)}
            given = self._settings_of(name)
            gone = {source: "" for source in stored if source.startswith("settings:") and source not in given}
            new = {source: text for source, text in given.items() if stored.get(source) != text}
            if gone or new:
                self.change(name, gone | new)

    def _settings_of(self, queue: str) -> dict[str, str]:
        options = self._config.queue(queue)
        most = {"settings:queue": options.max_running, "settings:clients": options.client.get("max_running")}
        most |= {f"settings:client:{name}": limits.get("max_running") for name, limits in options.clients.items()}
        return {source: limit_text(number) for source, number in most.items() if number is not None}


def limit_text(max_running: int | None) -> str:
    """A limit as it is stored; None: any number. Raises ValueError."""
    if max_running is None:
        return _UNLIMITED
    if type(max_running) is not int or max_running < 0:
        raise ValueError(
            f"max_running is {max_running!r}, but has to be a whole number from 0 on, or None for no limit."
        )
    return f"{_MAX_RUNNING}{max_running}"


def read_limit(text: str) -> int | None:
    """The number in a stored limit; None: any number."""
    return int(text.removeprefix(_MAX_RUNNING)) if text.startswith(_MAX_RUNNING) else None
