"""Changes the limits of queues and clients that claims keep to: see lua/lib/limits.lua and limit_sources.lua."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from django_rtq.broker.keys import Keys
from django_rtq.broker.redis.client import RedisClient
from django_rtq.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.conf.config import Config
from django_rtq.conf.queue_options import LIMIT_KINDS

ASKED_MS = 60_000  # for how long it holds what `limits_of` said of a client
IDLE_MS = 86_400_000  # that is forgotten when nobody has met the client for so long, and it has no jobs
KEPT_AT_ONCE = 100


class LimitStore:
    """Writes limits to Redis. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, redis: RedisClient, keys: Keys, config: Config) -> None:
        self._redis = redis
        self._keys = keys
        self._config = config

    def change(self, queue: str, changes: Mapping[str, str]) -> None:
        """Change the texts of sources: see set_limits.lua. Then let those clients go on that may."""
        keys = self._keys.of(queue)
        arguments = [text for change in changes.items() for text in change]
        if not self._redis.execute_one(SCRIPTS["set_limits"].call(keys, arguments), resend=True):
            return  # no client is blocked
        clients = self._redis.execute_one(("HKEYS", keys.blocked), resend=True)
        parts = [clients[start : start + AT_ONCE] for start in range(0, len(clients), AT_ONCE)]
        self._redis.execute([SCRIPTS["check_blocked"].call(keys, part) for part in parts], resend=True)

    def seconds_left(self, queue: str, clients: Sequence[str]) -> list[float]:
        """For how many seconds it still holds what any process has been told of these clients; 0.0: it does not."""
        key = self._keys.of(queue).asked_limits
        asked, (seconds, micros) = self._redis.execute([("ZMSCORE", key, *clients), ("TIME",)], resend=True)
        now_ms = int(seconds) * 1000 + int(micros) // 1000
        return [min(ASKED_MS, max(0.0, float(at or 0) + ASKED_MS - now_ms)) / 1000 for at in asked]

    def keep(self, queue: str, limits: Mapping[str, Mapping[str, Any]]) -> None:
        """Store what `limits_of` said of clients, by name."""
        keys = self._keys.of(queue)
        pairs = [(client, _said_text(values)) for client, values in limits.items()]
        parts = [pairs[start : start + KEPT_AT_ONCE] for start in range(0, len(pairs), KEPT_AT_ONCE)]
        calls = [SCRIPTS["keep_limits"].call(keys, (IDLE_MS, *chain.from_iterable(part))) for part in parts]
        self._redis.execute(calls, resend=True)

    def apply_settings(self, queues: Iterable[str]) -> None:
        """Store the limits of RTQ["QUEUES"], if others are stored. Each worker process does so when it starts."""
        names = list(queues)
        replies = self._redis.execute([("HGETALL", self._keys.of(name).limit_sources) for name in names], resend=True)
        for name, reply in zip(names, replies, strict=True):
            stored = {source.decode(): text.decode() for source, text in zip(reply[::2], reply[1::2], strict=True)}
            given = self._settings_of(name)
            sources = sorted({source for source in stored if source.startswith("settings:")} | given.keys())
            if not self._config.queue(name).limits_of:
                self._forget_function(name, [source for source in stored if source.startswith("limits_of:")])
            changes = {source: _change(stored.get(source, ""), given.get(source, {})) for source in sources}
            if changes := {source: change for source, change in changes.items() if change is not None}:
                self.change(name, changes)

    def _forget_function(self, queue: str, sources: Sequence[str]) -> None:
        """The settings have no `limits_of` any more."""
        for start in range(0, len(sources), KEPT_AT_ONCE):
            self.change(queue, dict.fromkeys(sources[start : start + KEPT_AT_ONCE], ""))
        if sources:
            self._redis.execute_one(("DEL", self._keys.of(queue).asked_limits), resend=True)

    def _settings_of(self, queue: str) -> dict[str, Mapping[str, Any]]:
        options = self._config.queue(queue)
        limits = {"settings:queue": options.limits, "settings:clients": options.client}
        limits |= {f"settings:client:{name}": values for name, values in options.clients.items()}
        return {source: values for source, values in limits.items() if values}


def _said_text(limits: Mapping[str, Any]) -> str:
    """What is stored of a client's limits. The last word has their names: readers see by it where they come from."""
    texts = [LIMIT_KINDS[name].text(value) for name, value in limits.items()]
    return " ".join([*texts, f"limits_of={','.join(limits)}"]) if texts else ""


def limit_values(text: str) -> dict[str, str]:
    """The values in a stored text, by name. The first of a name holds."""
    pairs = [pair.partition("=") for pair in text.split()]
    return {name: value for name, _, value in reversed(pairs)}


def _change(stored: str, limits: Mapping[str, Any]) -> str | None:
    """What makes the stored text that of these limits; None if it is."""
    before = limit_values(stored)
    after = limit_values(" ".join(LIMIT_KINDS[name].text(value) for name, value in limits.items()))
    if before == after:
        return None
    return " ".join(f"{name}={after.get(name, '')}" for name in before | after) if after else ""
