"""All clients over all queues: counted in steps, kept for seconds if there are many, sorted, searched and paged."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain
from threading import Lock

from django_rtq.console.inspector.clients.client_states import Shares
from django_rtq.console.inspector.clients.queue_clients import QueueClients
from django_rtq.console.merging import JOINED, LEAST, MOST
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import read_queue_names
from django_rtq.core.broker.redis.client import clock_ms
from django_rtq.core.broker.redis.commands import Packet
from django_rtq.core.jobs.job import clock_moment

FEW = 1000  # clients that are counted anew each time
KEPT_SECONDS = 10.0  # for how long the counts of more are kept, at least
KEPT_TIMES = 20  # as long as counting took, at least: it takes a twentieth of the time of a process at most

#: What a list can be sorted by. Names begin with A, numbers with the greatest, unless the order is reversed.
SORTS = ("name", "queued", "scheduled", "running", "oldest", "starts", "time", "fair")
#: To which clients a list can be limited.
STATES = ("waiting", "paused", "limited")
_COLUMNS = {"starts": "runs", "time": "us", "fair": "fair_runs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedClient:
    """One client over all queues."""

    client: str
    queued: int  # jobs in its lanes
    scheduled: int  # jobs that wait for their time, retries included
    running: int  # counted in queues with limits
    oldest_seconds: float | None  # how long the first of those in its lanes has been waiting; None: there is none
    shares: Shares  # of what ran in the last ten minutes
    is_paused: bool  # in at least one queue
    is_limited: bool  # it has limits of its own
    reasons: list[tuple[str, str]]  # queues in which its jobs do not start, and why
    shards: Sequence[int]  # that know it, if all are counted at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPage:
    """A page of the list."""

    clients: list[ListedClient]
    matching: int  # clients that match the search
    known: int  # clients that there are
    counted_at: datetime  # by the clock of Redis
    age_seconds: float  # 0.0: they were counted for this page
    #: False: a queue has more clients than are read. Those whose first jobs wait longest are counted.
    is_complete: bool


@dataclass(kw_only=True)
class ClientCounts:
    """All clients at one moment."""

    queues: Sequence[QueueClients] = field(metadata=JOINED)
    now_ms: int = field(metadata=MOST)
    read_at: float = field(default_factory=time.monotonic, metadata=LEAST)
    kept_seconds: float = field(default=0.0, metadata=MOST)

    @property
    def age_seconds(self) -> float:
        """Since they were counted; 0.0 if they are not kept."""
        return time.monotonic() - self.read_at if self.kept_seconds else 0.0

    def page(
        self,
        *,
        sort: str = "queued",
        is_reversed: bool = False,
        search: str = "",
        state: str = "",
        start: int = 0,
        limit: int | None = None,
    ) -> ClientPage:
        """A part of the clients whose names contain `search`, in any case, and that are in a state of STATES."""
        matching = self.matching(sort=sort, is_reversed=is_reversed, search=search, state=state)
        return ClientPage(
            clients=[self._client(name) for name in matching[start : None if limit is None else start + limit]],
            matching=len(matching),
            known=len(self._names),
            counted_at=clock_moment(self.now_ms),
            age_seconds=self.age_seconds,
            is_complete=all(queue.is_complete for queue in self.queues),
        )

    # -- which clients

    def matching(
        self, *, sort: str = "queued", is_reversed: bool = False, search: str = "", state: str = ""
    ) -> list[bytes]:
        """The names of the clients of page(), of all its pages."""
        return self._sorted(self._selected(search.casefold(), state), sort, is_reversed=is_reversed)

    @cached_property
    def _names(self) -> Mapping[bytes, str]:
        """What is searched, in the order of names."""
        clients = set[bytes]().union(*(queue.clients for queue in self.queues))
        names = [(client.decode(errors="replace").casefold(), client) for client in clients]
        return {client: name for name, client in sorted(names)}

    def _selected(self, search: str, state: str) -> list[bytes]:
        """In the order of names."""
        names = [client for client, name in self._names.items() if search in name] if search else list(self._names)
        return [client for client in names if client in self._states[state]] if state in STATES else names

    @cached_property
    def _states(self) -> Mapping[str, set[bytes]]:
        return {
            "waiting": {client for queue in self.queues for part in (queue.queued, queue.scheduled) for client in part},
            "paused": {client for queue in self.queues for client in queue.paused_clients},
            "limited": {client for queue in self.queues for client in queue.limited_clients},
        }

    def _sorted(self, names: list[bytes], sort: str, *, is_reversed: bool) -> list[bytes]:
        if sort == "name":
            return names[::-1] if is_reversed else names
        if sort == "oldest":
            since = self._oldest
            waiting = sorted((name for name in names if name in since), key=since.__getitem__, reverse=is_reversed)
            return [*waiting, *(name for name in names if name not in since)]
        sums = self._sums(_COLUMNS.get(sort, sort if sort in SORTS else "queued"))
        return sorted(names, key=lambda client: sums.get(client, 0), reverse=not is_reversed)

    # -- figures

    def _sums(self, column: str) -> Mapping[bytes, float]:
        """A column of QueueClients, added up over the queues."""
        if column not in self._kept_sums:
            sums: dict[bytes, float] = {}
            for queue in self.queues:
                for client, number in getattr(queue, column).items():
                    sums[client] = sums.get(client, 0) + number
            self._kept_sums[column] = sums
        return self._kept_sums[column]

    @cached_property
    def _kept_sums(self) -> dict[str, Mapping[bytes, float]]:
        return {}

    @cached_property
    def _oldest(self) -> Mapping[bytes, float]:
        """Since when the first job of a client waits, ms."""
        since: dict[bytes, float] = {}
        for queue in self.queues:
            for client in queue.queued:
                since[client] = min(queue.since[client], since.get(client, queue.since[client]))
        return since

    @cached_property
    def _all_runs(self) -> float:
        return sum(queue.all_runs for queue in self.queues)

    @cached_property
    def _all_us(self) -> float:
        return sum(queue.all_us for queue in self.queues)

    def _client(self, name: bytes) -> ListedClient:
        in_queues = [queue for queue in self.queues if name in queue.clients]
        since = min((queue.since[name] for queue in in_queues if name in queue.queued), default=None)
        reasons = [(queue.queue, queue.reason(name)) for queue in in_queues]

        def total(column: str) -> float:
            return sum(float(getattr(queue, column).get(name, 0)) for queue in in_queues)

        return ListedClient(
            client=name.decode(errors="replace"),
            queued=round(total("queued")),
            scheduled=round(total("scheduled")),
            running=round(total("running")),
            oldest_seconds=None if since is None else max(0.0, (self.now_ms - since) / 1000),
            shares=Shares(
                starts=_part(total("runs"), self._all_runs),
                time=_part(total("us"), self._all_us),
                fair=_part(total("fair_runs"), self._all_runs),
            ),
            is_paused=name in self._states["paused"],
            is_limited=name in self._states["limited"],
            reasons=[(queue, reason) for queue, reason in reasons if reason],
            shards=sorted({queue.shard for queue in in_queues if queue.shard is not None}),
        )


class ClientListReader:
    """Counts clients. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._redis, self._keys = broker.redis, broker.keys
        self._kept: ClientCounts | None = None
        self._lock = Lock()

    def read(self) -> ClientCounts:
        """The clients of all queues. Three round trips, or none if many were counted a moment ago."""
        with self._lock:  # several viewers count once
            if self._kept is None or self._kept.age_seconds >= self._kept.kept_seconds:
                self._kept = None  # not in memory beside the new ones
                self._kept = self.count()
            return self._kept

    def forget(self) -> None:
        """Count anew at the next read(): something was changed."""
        self._kept = None

    def count(self, queues: Iterable[str] | None = None) -> ClientCounts:
        """The clients of some queues, or of all, as they are now."""
        started = time.monotonic()
        known, now = self._redis.execute([("SMEMBERS", self._keys.queues), ("TIME",)], resend=True)
        names = read_queue_names(known) if queues is None else list(queues)
        counts = ClientCounts(queues=self._read(names, clock_ms(now)), now_ms=clock_ms(now))
        if sum(len(queue.clients) for queue in counts.queues) > FEW:
            counts.kept_seconds = max(KEPT_SECONDS, KEPT_TIMES * (time.monotonic() - started))
        return counts

    def _read(self, names: Sequence[str], now_ms: int) -> list[QueueClients]:
        packet = Packet()
        for name in names:
            packet.add(name, *QueueClients.commands(self._keys.of(name), now_ms))
        replies = packet.replies(self._redis.execute(packet.commands, resend=True))
        queues = [QueueClients.read(name, now_ms, replies[name]) for name in names]
        packet = Packet()
        for queue in queues:
            packet.add(queue.queue, *queue.count_commands(self._keys.of(queue.queue)))
        replies = packet.replies(self._redis.execute(packet.commands, resend=True))
        for queue in queues:
            queue.counts = list(chain.from_iterable(replies[queue.queue]))
        return queues


def _part(one: float, of_all: float) -> float | None:
    return min(1.0, one / of_all) if of_all else None
