"""Reads clients: one in its queues, some of a queue, or all, which are counted in steps and kept if they are many."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from threading import Lock
from typing import Any

from django_rtq.console.reading.clients.client_list import AllClients
from django_rtq.console.reading.clients.client_states import ClientInQueue, QueueState
from django_rtq.console.reading.clients.queue_clients import QueueClients
from django_rtq.console.reading.queues import QueueReader
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import read_queue_names
from django_rtq.core.broker.redis.client import clock_ms
from django_rtq.core.broker.redis.commands import Command, Packet
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.task_backends import shard_of

STATES_AT_ONCE = 50  # clients whose states one script reads: a millisecond
MAX_LANES = 400  # that are searched for the clients with most jobs

FEW = 1000  # clients that are counted anew each time
KEPT_SECONDS = 10.0  # for how long the counts of more are kept, at least
KEPT_TIMES = 20  # as long as counting took, at least: it takes a twentieth of the time of a process at most


class ClientReader:
    """Reads clients. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._queues = QueueReader(broker)
        self._redis, self._keys, self._shard = broker.redis, broker.keys, shard_of(broker.backend)
        self._kept: AllClients | None = None
        self._lock = Lock()

    def get(self, client: str, queues: Iterable[str] | None = None) -> list[ClientInQueue]:
        """A client in these queues; in all queues, if none is named. Two round trips, or one."""
        names = self._queues.names() if queues is None else list(queues)
        found = self._read([(name, 0, [client]) for name in names])
        return [queue.client(client.encode()) for queue in found]

    def in_queue(self, queue: str, clients: Collection[str]) -> tuple[QueueState, list[ClientInQueue]]:
        """Some clients of a queue, and the queue: one round trip."""
        names = list(clients)
        parts = [names[start : start + STATES_AT_ONCE] for start in range(0, len(names), STATES_AT_ONCE)]
        of_queue, *found = self._read([(queue, 0, []), *((queue, -1, part) for part in parts)])
        for each in found:
            each.all_weights = of_queue.all_weights  # takes as long as 50 clients, and is the same
        return of_queue.state, [each.client(name) for each in found for name in each.delayed]

    def busiest(self, queue: str, limit: int = 50) -> list[ClientInQueue]:
        """The clients of a queue with most waiting jobs, and of the others those that ran longest. No fair shares."""
        return self.read_busiest(queue, self._redis.execute_one(self.busiest_command(queue, limit), resend=True), limit)

    def busiest_command(self, queue: str, limit: int) -> Command:
        """The command for read_busiest()."""
        return SCRIPTS["client_states"].call(self._keys.of(queue), (MAX_LANES, limit))

    def read_busiest(self, queue: str, reply: Any, limit: int) -> list[ClientInQueue]:
        """Read the reply to busiest_command()."""
        found = QueueClients.read_some(queue, self._shard, reply)
        return most_queued(map(found.client, found.delayed), limit)

    # -- all

    def all(self) -> AllClients:
        """The clients of all queues. Three round trips, or none if many were counted a moment ago."""
        with self._lock:  # several viewers count once
            if self._kept is None or self._kept.age_seconds >= self._kept.kept_seconds:
                self._kept = None  # not in memory beside the new ones
                self._kept = self.count()
            return self._kept

    def forget(self) -> None:
        """Count anew at the next all(): something was changed."""
        self._kept = None

    def count(self, queues: Iterable[str] | None = None) -> AllClients:
        """The clients of some queues, or of all, as they are now."""
        started = time.monotonic()
        known, now = self._redis.execute([("SMEMBERS", self._keys.queues), ("TIME",)], resend=True)
        names = read_queue_names(known) if queues is None else list(queues)
        found = AllClients(queues=self._count(names, clock_ms(now)), now_ms=clock_ms(now))
        if sum(len(queue.clients) for queue in found.queues) > FEW:
            found.kept_seconds = max(KEPT_SECONDS, KEPT_TIMES * (time.monotonic() - started))
        return found

    # -- inside

    def _read(self, wanted: Sequence[tuple[str, int, Sequence[str]]]) -> list[QueueClients]:
        """Some clients of queues, with the weights of all (0) or without (-1), in one round trip."""
        script = SCRIPTS["client_states"]
        calls = [script.call(self._keys.of(queue), (weights, 0, *clients)) for queue, weights, clients in wanted]
        replies = self._redis.execute(calls, resend=True)
        return [
            QueueClients.read_some(queue, self._shard, reply)
            for (queue, *_), reply in zip(wanted, replies, strict=True)
        ]

    def _count(self, names: Sequence[str], now_ms: int) -> list[QueueClients]:
        packet = Packet()
        for name in names:
            packet.add(name, *QueueClients.commands(self._keys.of(name), now_ms))
        replies = packet.replies(self._redis.execute(packet.commands, resend=True))
        queues = [QueueClients.read(name, self._shard, now_ms, replies[name]) for name in names]
        packet = Packet()
        for queue in queues:
            packet.add(queue.queue, *queue.count_commands(self._keys.of(queue.queue)))
        replies = packet.replies(self._redis.execute(packet.commands, resend=True))
        for queue in queues:
            queue.counts = replies[queue.queue]
        return queues


def most_queued(clients: Iterable[ClientInQueue], limit: int) -> list[ClientInQueue]:
    """Those with most waiting jobs, and then those that ran longest."""
    return sorted(clients, key=lambda client: (client.queued, client.busy_seconds), reverse=True)[:limit]
