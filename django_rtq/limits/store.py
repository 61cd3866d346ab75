"""Changes the limits of queues and clients that claims keep to: see lua/lib/limits.lua and set_limits.lua.

Only claims know limits (D83). Weights are strides of turns (D86), by jobs or by time (D96). What limits cost, and why
small hashes are kept from being small: D103.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from django_rtq.core.broker.keys import Keys, QueueKeys
from django_rtq.core.broker.redis.client import RedisClient, as_dict, clock_ms
from django_rtq.core.broker.redis.commands import Argument, Command, checked
from django_rtq.core.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.core.conf.config import Config
from django_rtq.core.extension import Chore
from django_rtq.limits.limit_kinds import LIMIT_KINDS, limits_text

if TYPE_CHECKING:
    from django_rtq.core.broker.broker import Broker

logger = logging.getLogger("django_rtq")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Whose settings of limits hold for a queue."""

    started_ms: int  # when that worker started, by the clock of Redis; 0: it is a producer
    digest: str  # of the limits
    version: str  # of the project, RTQ["VERSION"]

    @classmethod
    def read(cls, text: bytes | None) -> Stamp | None:
        """A stored stamp; None: nobody has stored any."""
        if not text:
            return None
        started, digest, version = text.decode().split(" ", 2)
        return cls(int(started), digest, version)

    @property
    def text(self) -> str:
        """As it is stored."""
        return f"{self.started_ms} {self.digest} {self.version}"

    def wins_over(self, other: Stamp, latest_version: str) -> bool:
        """Whether these settings hold: those of the latest version of the project, then of who started last."""
        own_rank, other_rank = (
            (stamp.version != "" and stamp.version == latest_version, stamp.started_ms) for stamp in (self, other)
        )
        return own_rank >= other_rank


class LimitStore:
    """Writes limits to Redis. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, redis: RedisClient, keys: Keys, config: Config) -> None:
        self._redis = redis
        self.keys = keys
        self.config = config

    def change(self, queue: str, changes: Mapping[str, str]) -> None:
        """Change the texts of sources: see set_limits.lua. Then let those blocked clients continue that may."""
        keys = self.keys.of(queue)
        if not self._redis.execute_one(self._command(queue, "", "", changes), resend=True):
            return  # no client is blocked
        self._check_blocked(keys)

    def settings_command(self, queue: str) -> Command:
        """What a producer sends when it uses a queue first: its settings hold until a worker stores its own."""
        return self._command(queue, "", Stamp(0, self.digest(queue), "").text, self._entries(queue))

    def apply_settings(self, queue: str, started_ms: int, latest_version: str) -> bool:
        """Store the limits of RTQ["QUEUES"] of a worker. False: those of another worker hold, which differ."""
        keys, own = self.keys.of(queue), Stamp(started_ms, self.digest(queue), self.config.version or "")
        while True:
            reads: list[Command] = [("GET", keys.settings_stamp), ("HGETALL", keys.limit_sources)]
            expected, reply = self._redis.execute(reads, resend=True)
            stored = Stamp.read(expected)
            if stored is not None and not own.wins_over(stored, latest_version):
                return stored.digest == own.digest
            sources = {source.decode(): text.decode() for source, text in as_dict(reply).items()}
            stored_settings = [source for source in sources if source.startswith("settings:")]
            settings = dict.fromkeys(stored_settings, "") | self._entries(queue)
            if stored is None and not settings and not own.digest:
                return True  # of a queue without limits nothing is stored
            changed = {source: text for source, text in settings.items() if sources.get(source, "") != text}
            command = self._command(queue, expected or "", own.text, changed)
            blocked = self._redis.execute_one(command, resend=True)
            if blocked >= 0:
                break
        if blocked and changed:
            self._check_blocked(keys)
        return True

    def digest(self, queue: str) -> str:
        """A digest of the limits in the settings; "": there are none."""
        entries = sorted(self._entries(queue).items())
        return hashlib.sha1(repr(entries).encode(), usedforsecurity=False).hexdigest()[:12] if entries else ""

    def _command(self, queue: str, expected: str | bytes, stamp: str, entries: Mapping[str, str]) -> Command:
        texts = chain.from_iterable(entries.items())
        return SCRIPTS["set_limits"].call(self.keys.of(queue), (expected, stamp, *texts))

    def _check_blocked(self, keys: QueueKeys) -> None:
        """Let those blocked clients continue that may."""
        clients = self._redis.execute_one(("HKEYS", keys.blocked), resend=True)
        parts = [clients[start : start + AT_ONCE] for start in range(0, len(clients), AT_ONCE)]
        self._redis.execute([SCRIPTS["check_blocked"].call(keys, part) for part in parts], resend=True)

    def _entries(self, queue: str) -> dict[str, str]:
        """The limits of the settings, as the hash `limit_sources` has them."""
        options = self.config.queue(queue)
        limits = {"settings:queue": options.limits, "settings:clients": options.client}
        limits |= {f"settings:client:{name}": values for name, values in options.clients.items()}
        return {source: limits_text(LIMIT_KINDS, values) for source, values in limits.items() if values}


class SettingsKeeper:
    """Keeps the limits of a worker's settings in Redis, from its start on: also after Redis has lost its data.

    Workers with other settings may run: see Stamp.wins_over(). The processes of a worker store none: a replaced one
    would take the limits of a deploy back.
    """

    def __init__(self, store: LimitStore, queues: Sequence[str]) -> None:
        self.overruled: list[str] = []  # queues for which other settings hold
        self._store = store
        self._version_ms = 4 * int(store.config.lease_seconds * 1000)  # as long as workers that run report theirs
        self._digests = {queue: store.digest(queue) for queue in queues}
        self._started_ms = 0

    @property
    def reads(self) -> list[Command]:
        """What it has to know. The replies are for do()."""
        keys = self._store.keys
        default = keys.of(self._store.config.default_queue)
        stamps: Command = ("MGET", *(keys.of(queue).settings_stamp for queue in self._digests))
        return [("TIME",), ("LINDEX", default.deploys, 0), ("HGETALL", default.versions), stamps]

    def info(self) -> dict[str, Argument]:
        """What people see of the workers."""
        return {"other_limits": ",".join(self.overruled)} if self.overruled else {}

    def do(self, replies: list[Any], until: float) -> None:
        """Store the limits that should be stored and are not. Raises BrokerError."""
        before = set(self.overruled)
        time, deploy, versions, stamps = checked(replies)
        now_ms, latest = clock_ms(time), (deploy or b"").partition(b" ")[2]
        if int(as_dict(versions).get(latest, 0)) < now_ms - self._version_ms:
            latest = b""  # it does not run any more
        is_start, self._started_ms = not self._started_ms, self._started_ms or now_ms
        self.overruled = [
            queue
            for (queue, digest), stored in zip(self._digests.items(), stamps, strict=True)
            if not self._keep(queue, digest, Stamp.read(stored), latest.decode(), is_start=is_start)
        ]
        for queue in self.overruled:
            if queue not in before:
                logger.warning(
                    'queue %s: the limits in RTQ["QUEUES"] of this worker do not hold, because a worker with other '
                    "settings started later or has the latest version of the project",
                    queue,
                )  # fmt: skip

    def _keep(self, queue: str, digest: str, stored: Stamp | None, latest: str, *, is_start: bool) -> bool:
        own = Stamp(self._started_ms, digest, self._store.config.version or "")
        if stored == own or (stored is None and not digest and not is_start):
            return True
        if stored is not None and not own.wins_over(stored, latest):
            return stored.digest == digest  # most workers: they read no more with each heartbeat
        return self._store.apply_settings(queue, self._started_ms, latest)


def duties(broker: Broker, queues: Sequence[str]) -> list[Chore]:
    """What the heartbeat does for limits."""
    keeper = SettingsKeeper(broker.limits, queues)
    return [Chore("keeping limits", keeper.do, keeper.reads, keeper.info)]
