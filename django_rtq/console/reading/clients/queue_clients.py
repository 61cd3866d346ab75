"""Clients of one queue: all, read in two steps, or some, read by one script. Each call is short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from django_rtq.console.reading.clients.client_states import ClientInQueue, QueueState
from django_rtq.console.reading.clients.holds import NO_HOLDS, Holds, read_holds
from django_rtq.core.broker.keys import QueueKeys
from django_rtq.core.broker.redis.client import as_dict
from django_rtq.core.broker.redis.commands import Command
from django_rtq.limits.limits import Limits, read_limits, read_pause
from django_rtq.limits.store import limit_values

MOST = 10_000  # entries of a key that are read; the counters of runs have no more names, either
_SLICE_MS = 600_000  # counters of clients are for ten minutes each: see metrics.lua
_ALL_TIME, _ALL_RUNS = b"\n", b"\nruns"  # entries of these counters for all clients
_TOTALS = {_ALL_TIME, _ALL_RUNS}


@dataclass(frozen=True, slots=True)
class RecentRuns:
    """Counters of ten minutes: runs and µs by client, and which part of them lies in the last ten minutes."""

    runs: Mapping[bytes, bytes]
    us: Mapping[bytes, bytes]
    part: float


@dataclass(kw_only=True)
class QueueClients:
    """Clients of a queue, by their names in Redis."""

    queue: str
    shard: int | None
    now_ms: int
    is_complete: bool  # no key has more entries than MOST
    lanes: Sequence[bytes]  # "band:client"; those whose first jobs wait longest come first
    waiting_since: Sequence[bytes]  # since when these wait, ms
    delayed: Sequence[bytes]  # the clients with jobs that wait for their time
    limits: Mapping[bytes, bytes]  # see the key `limits`
    sources: Mapping[bytes, bytes]  # see the key `limit_sources`
    running_counts: Mapping[bytes, bytes]  # see the key
    blocked: Mapping[bytes, bytes]  # see the key
    next_starts: Mapping[bytes, bytes]  # see the key
    paused: bytes
    recent: Sequence[RecentRuns]  # of the present ten minutes, and of the last ones
    counts: Sequence[int] = field(default_factory=list)  # of the lanes, and then of the delayed
    all_weights: float | None = None  # of all clients that had work; None: they are all here

    # -- step 1

    @staticmethod
    def commands(keys: QueueKeys, now_ms: int) -> list[Command]:
        """The commands of the first step."""
        slices = [str(now_ms // _SLICE_MS - back).encode() for back in (0, 1)]
        hashes = keys.limits, keys.limit_sources, keys.running_counts, keys.blocked
        return [
            ("ZRANGE", keys.lanes, 0, MOST - 1, "WITHSCORES"),
            ("ZCARD", keys.lanes),
            ("ZRANGE", keys.scheduled_by_client, 0, MOST - 1),
            *(("HSCAN", key, 0, "COUNT", MOST) for key in hashes),
            ("ZRANGE", keys.next_starts, 0, MOST - 1, "WITHSCORES"),
            ("HGET", keys.paused, "queue"),
            *(("HGETALL", keys.client_runs + slice_name) for slice_name in slices),
            *(("ZRANGE", keys.client_time + slice_name, 0, MOST - 1, "WITHSCORES") for slice_name in slices),
        ]

    @classmethod
    def read(cls, queue: str, shard: int | None, now_ms: int, replies: Sequence[Any]) -> QueueClients:
        """Read their replies."""
        lanes, number, delayed, *hashes, next_starts, paused, runs, old_runs, us, old_us = replies
        limits, sources, running_counts, blocked = (as_dict(entries) for _cursor, entries in hashes)
        recent = (runs, us, 1.0), (old_runs, old_us, 1 - now_ms % _SLICE_MS / _SLICE_MS)
        return cls(
            queue=queue,
            shard=shard,
            now_ms=now_ms,
            is_complete=number <= MOST and len(delayed) < MOST and all(cursor == b"0" for cursor, _ in hashes),
            lanes=lanes[::2],
            waiting_since=lanes[1::2],
            delayed=delayed,
            limits=limits,
            sources=sources,
            running_counts=running_counts,
            blocked=blocked,
            next_starts=as_dict(next_starts),
            paused=paused or b"",
            recent=[RecentRuns(as_dict(runs), as_dict(us), part) for runs, us, part in recent],
        )

    @classmethod
    def read_some(cls, queue: str, shard: int | None, reply: Sequence[Any]) -> QueueClients:
        """Read the reply of the script `client_states`."""
        (now_ms, all_weights, counts), replies = reply
        found = cls.read(queue, shard, now_ms, replies)
        found.counts, found.all_weights = counts, float(all_weights)
        return found

    # -- step 2

    def count_commands(self, keys: QueueKeys) -> list[Command]:
        """The commands of the second step. Their replies are `counts`."""
        lanes = [("LLEN", keys.lane + lane) for lane in self.lanes]
        return [*lanes, *(("ZCARD", keys.scheduled_by_client + b":" + client) for client in self.delayed)]

    # -- figures by client

    @cached_property
    def queued(self) -> Mapping[bytes, int]:
        """Jobs in the lanes of each client that has any."""
        numbers: dict[bytes, int] = {}
        for client, number in zip(self._lane_clients, self.counts, strict=False):
            if number:
                numbers[client] = numbers.get(client, 0) + number
        return numbers

    @cached_property
    def scheduled(self) -> Mapping[bytes, int]:
        """Jobs that wait for their time."""
        counts = zip(self.delayed, self.counts[len(self.lanes) :], strict=True)
        return {client: number for client, number in counts if number}

    @cached_property
    def running(self) -> Mapping[bytes, float]:
        """Running jobs, which are counted while there are limits."""
        counts = self.running_counts.items()
        return {name.partition(b":")[2]: int(number) for name, number in counts if b":" in name}

    @cached_property
    def since(self) -> Mapping[bytes, float]:
        """Since when the first job in the lanes of each client waits, ms."""
        # From the end: the lane that comes first wins.
        return dict(zip(reversed(self._lane_clients), map(float, reversed(self.waiting_since)), strict=True))

    @cached_property
    def runs(self) -> Mapping[bytes, float]:
        """Runs of the last ten minutes, estimated; of all clients under the name of that total."""
        return self._recent_sum([(slice_.runs, slice_.part) for slice_ in self.recent])

    @cached_property
    def us(self) -> Mapping[bytes, float]:
        """How long these took."""
        return self._recent_sum([(slice_.us, slice_.part) for slice_ in self.recent])

    @cached_property
    def all_runs(self) -> float:
        """Runs of all clients."""
        return sum(slice_.part * int(slice_.runs.get(_ALL_RUNS, 0)) for slice_ in self.recent)

    @cached_property
    def all_us(self) -> float:
        """How long these took."""
        return sum(slice_.part * float(slice_.runs.get(_ALL_TIME, 0)) for slice_ in self.recent)

    @cached_property
    def fair_runs(self) -> Mapping[bytes, float]:
        """Of all runs, how many would have been those of each client if they went by weights."""
        parts = {**dict.fromkeys(self._had_work - self._able, self.recent[1].part), **dict.fromkeys(self._able, 1.0)}
        if b"weights" in self.limits:
            parts = {client: part * self._weight(client) for client, part in parts.items()}
        weights = sum(parts.values()) if self.all_weights is None else self.all_weights
        runs_of_one = self.all_runs / weights if weights else 0.0
        return {client: part * runs_of_one for client, part in parts.items()}

    # -- all that is known

    @cached_property
    def state(self) -> QueueState:
        """What its clients have in common."""
        limits = self._limits(b"queue")
        return QueueState(
            limits=limits,
            default=self._limits(b"clients"),
            running=int(self.running_counts.get(b"queue", 0)),
            holds=self._holds(b"queue", self.paused, limits),
            runs=self.all_runs,
            busy_seconds=self.all_us / 1_000_000,
        )

    def client(self, name: bytes) -> ClientInQueue:
        """One of them."""
        member, pause = b"client:" + name, self.limits.get(b"paused:" + name, b"")
        own, running, queued = self._limits(member), int(self.running_counts.get(member, 0)), self.queued.get(name, 0)
        found = ClientInQueue(
            client=name.decode(errors="replace"),
            queue=self.queue,
            queued=queued,
            oldest_seconds=max(0.0, (self.now_ms - self.since[name]) / 1000) if queued else None,
            scheduled=self.scheduled.get(name, 0),
            running=running if running or own or pause or self.state.default or self.state.limits else None,
            own=own,
            pause=read_pause(pause.decode()),
            is_blocked=name in self.blocked,
            holds=self._holds(member, pause, {**self.state.default, **own}) if self.limits else NO_HOLDS,
            runs=self.runs.get(name, 0.0),
            busy_seconds=self.us.get(name, 0.0) / 1_000_000,
            fair_runs=self.fair_runs.get(name, 0.0),
            queue_state=self.state,
        )
        found.shards = (self.shard,) if self.shard is not None and found.is_known else ()
        return found

    # -- who is there

    @cached_property
    def clients(self) -> set[bytes]:
        """Who has jobs or limits here, or ran jobs lately."""
        return {
            *self.queued,
            *self.scheduled,
            *self.running,
            *self._had_work,
            *self.paused_clients,
            *self.limited_clients,
        }

    @cached_property
    def paused_clients(self) -> set[bytes]:
        """Those that are paused."""
        return set(self._named(b"paused:"))

    @cached_property
    def limited_clients(self) -> set[bytes]:
        """Those that have limits of their own."""
        return set(self._named(b"client:"))

    # -- inside

    @cached_property
    def _lane_clients(self) -> Sequence[bytes]:
        return [lane.partition(b":")[2] for lane in self.lanes]

    @cached_property
    def _had_work(self) -> set[bytes]:
        """Who ran jobs in these counters, or may start one."""
        return (self.recent[0].runs.keys() | self.recent[1].runs.keys() | self._able) - _TOTALS

    @cached_property
    def _able(self) -> set[bytes]:
        """Who ran jobs in the present ten minutes, or may start one."""
        return (self.recent[0].runs.keys() | (set(self._lane_clients) - self.blocked.keys())) - _TOTALS

    def _named(self, prefix: bytes) -> Iterator[bytes]:
        return (name[len(prefix) :] for name in self.limits if name.startswith(prefix))

    def _recent_sum(self, counters: Sequence[tuple[Mapping[bytes, bytes], float]]) -> Mapping[bytes, float]:
        sums = {client: float(number) for client, number in counters[0][0].items()}
        for client, number in chain.from_iterable(numbers.items() for numbers, _ in counters[1:]):
            sums[client] = sums.get(client, 0) + counters[1][1] * float(number)
        return sums

    def _weight(self, client: bytes) -> float:
        """Its own weight, or that of each client."""
        for name in (b"client:" + client, b"clients"):
            if weight := limit_values(self.limits.get(name, b"").decode()).get("weight"):
                return float(weight)
        return 1.0

    def _limits(self, name: bytes) -> Limits:
        if name not in self.limits:
            return {}
        return read_limits(self.limits[name].decode(), self.sources.get(b"run:" + name, b"").decode())

    def _holds(self, member: bytes, pause: bytes, limits: Limits) -> Holds:
        most = limits["max_running"].value if "max_running" in limits else None
        at_limit = most if most is not None and int(self.running_counts.get(member, 0)) >= most else None
        starts_at = self.next_starts.get(member, b"")
        return read_holds(self.now_ms, pause, at_limit, int(float(starts_at)) if starts_at else b"")
