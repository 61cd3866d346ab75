"""One client in all queues: its jobs, its limits, and whether it is paused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.limits import ClientPause, Limits, read_limits, read_pause
from django_rtq.inspector.metrics import ClientDetails, MetricsReader
from django_rtq.inspector.queues import QueueReader


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInQueue:
    """What one client has in one queue."""

    queue: str
    queued: int  # jobs in its lanes
    oldest_seconds: float | None  # how long the first of them has been waiting; None: no job waits
    scheduled: int  # jobs that wait for their time, retries included
    running: int | None  # None: not counted, because the queue has no limits
    own: Limits  # the limits of this client
    default: Limits  # of each client
    pause: ClientPause | None
    is_blocked: bool  # it has jobs, and waits until it may start one

    @property
    def in_force(self) -> Limits:
        """The limits that hold for it: its own come first."""
        return {**self.default, **self.own}

    @property
    def is_at_limit(self) -> bool:
        """Whether it runs as many jobs as it may."""
        most = self.in_force.get("max_running")
        return most is not None and most.value is not None and (self.running or 0) >= most.value

    @property
    def is_known(self) -> bool:
        """Whether there is anything of it in this queue."""
        return bool(self.queued or self.scheduled or self.running or self.own or self.pause)


@dataclass(slots=True, kw_only=True)
class ClientSummary:
    """One client over all queues."""

    client: str
    queued: int = 0
    oldest_seconds: float | None = None  # how long its first job has been waiting; None: no job waits
    done_lately: int = 0  # runs in the last hour
    busy_seconds: float = 0.0  # how long these took
    share: float = 0.0  # of the time of all runs of the last hour, 0 to 1
    is_paused: bool = False  # in at least one queue
    is_limited: bool = False  # it has limits of its own

    def add(self, found: ClientDetails) -> None:
        """Add what was found in one queue."""
        waits = [seconds for seconds in (self.oldest_seconds, found.oldest_seconds) if seconds is not None]
        self.oldest_seconds = max(waits, default=None)
        self.queued += found.queued
        self.done_lately += found.done_lately
        self.busy_seconds += found.busy_seconds


class ClientReader:
    """Reads clients. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._queues, self._metrics = QueueReader(broker), MetricsReader(broker)
        self._redis, self._keys = broker.redis, broker.keys

    def get(self, client: str, queues: Iterable[str] | None = None) -> list[ClientInQueue]:
        """A client in these queues; in all queues, if none is named."""
        names = self._queues.names() if queues is None else list(queues)
        calls = [SCRIPTS["client_state"].call(self._keys.of(name), (client,)) for name in names]
        replies = self._redis.execute(calls, resend=True)
        return [_read(name, reply) for name, reply in zip(names, replies, strict=True)]

    def busiest(self, limit: int = 100) -> list[ClientSummary]:
        """The clients with most waiting jobs, those that did most lately, and those that are paused or have limits.

        Two round trips. Of each queue the lanes are read whose first jobs wait longest, 1,000 at most.
        """
        names = self._queues.names()
        commands = [self._metrics.clients_command(name, limit) for name in names]
        commands += [("HKEYS", self._keys.of(name).limits) for name in names]
        replies = self._redis.execute(commands, resend=True)
        found: dict[str, ClientSummary] = {}
        for reply in replies[: len(names)]:
            for each in self._metrics.read_clients(reply, limit, by="queued").clients:
                found.setdefault(each.client, ClientSummary(client=each.client)).add(each)
        total_us = sum(reply[2] for reply in replies[: len(names)])
        for one in found.values():
            one.share = min(1.0, one.busy_seconds * 1_000_000 / total_us) if total_us else 0.0
        _mark_limited(found, {field.decode() for fields in replies[len(names) :] for field in fields})
        in_order = sorted(found.values(), key=lambda one: (-one.is_paused, -one.queued, -one.share, one.client))
        return in_order[:limit]


def _mark_limited(found: dict[str, ClientSummary], fields: Iterable[str]) -> None:
    """Note who is paused or has limits, by the fields of the key `limits`."""
    for field in fields:
        kind, separator, client = field.partition(":")
        if separator:
            one = found.setdefault(client, ClientSummary(client=client))
            one.is_paused |= kind == "paused"
            one.is_limited |= kind == "client"


def _read(queue: str, reply: list[Any]) -> ClientInQueue:
    now_ms, queued, since, scheduled, running, *limits, is_blocked = reply
    own, own_at_run_time, default, default_at_run_time, pause = (text.decode() for text in limits)
    return ClientInQueue(
        queue=queue,
        queued=queued,
        oldest_seconds=max(0.0, (now_ms - float(since)) / 1000) if since else None,
        scheduled=scheduled,
        running=int(running) if running else 0 if own or default or pause else None,
        own=read_limits(own, own_at_run_time),
        default=read_limits(default, default_at_run_time),
        pause=read_pause(pause),
        is_blocked=is_blocked == 1,
    )
