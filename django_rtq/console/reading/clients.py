"""Reads clients: one in its queues, some of a queue, or all, which are counted in steps and kept if they are many."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from threading import Lock
from typing import Any

from django.utils.translation import gettext as _

from django_rtq.console.merging import ALL, ANY, EVERY, FIRST, JOINED, LEAST, MOST, ONE, SUM, TOTAL, merge
from django_rtq.console.reading.details import NO_HOLDS, Holds, holds_text, read_holds
from django_rtq.console.reading.queues import QueueReader, ask
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import QueueKeys, read_queue_names
from django_rtq.core.broker.redis.client import as_dict, clock_ms
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.task_backends import shard_of
from django_rtq.core.jobs.job import clock_moment
from django_rtq.limits.limit_kinds import Limits, limit_values, read_limits

STATES_AT_ONCE = 50  # clients whose states one script reads: a millisecond
MOST_BUSY = 20  # clients that the page of a queue shows
MAX_LANES = 400  # that are searched for the clients with most jobs
MAX_ENTRIES = 10_000  # of a key that are read; the counters of runs have no more names, either

FEW = 1000  # clients that are counted anew each time
KEPT_SECONDS = 10.0  # for how long the counts of more are kept, at least
KEPT_TIMES = 20  # as long as counting took, at least: it takes a twentieth of the time of a process at most

#: What a list can be sorted by. Names begin with A, numbers with the greatest, unless the order is reversed.
SORTS = ("name", "queued", "scheduled", "running", "oldest", "starts", "time", "fair")
#: To which clients a list can be limited.
STATES = ("waiting", "paused", "limited")

_COLUMNS = {"starts": "runs", "time": "us", "fair": "fair_runs"}
_SLICE_MS = 600_000  # counters of clients are for ten minutes each: see metrics.lua
_ALL_TIME, _ALL_RUNS = b"\n", b"\nruns"  # entries of these counters for all clients


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPause:
    """Since when a client is paused, and who did it; "" if that is not known."""

    since: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """What all clients of a queue have in common."""

    limits: Limits  # of the queue itself
    default: Limits = field(metadata=ALL)  # of each client, where it has none of its own
    running: int = field(metadata=SUM)  # counted while there are limits
    holds: Holds
    runs: float = field(metadata=SUM)  # of the last ten minutes; an estimate, like ClientInQueue.starts
    busy_seconds: float = field(metadata=SUM)  # how long these took
    clients: Mapping[str, ClientInQueue] = field(default_factory=dict)  # of what ClientReader.limits() returns, by name


@dataclass(slots=True, kw_only=True)
class ClientInQueue:
    """What one client has in one queue. Those of several queues add up, too."""

    client: str
    queue: str
    queued: int = field(metadata=SUM)  # jobs in its lanes
    #: How long the first of them has been waiting; None: no job waits.
    oldest_seconds: float | None = field(metadata=MOST)
    scheduled: int = field(metadata=SUM)  # jobs that wait for their time, retries included
    running: int | None = field(metadata=TOTAL)  # None: not counted, because the queue has no limits
    limits: Limits = field(metadata=ALL)  # its own
    pause: ClientPause | None = field(metadata=FIRST)
    is_blocked: bool = field(metadata=ANY)  # it has jobs, and waits until it may start one
    holds: Holds  # why it may not start a job
    runs: float = field(metadata=SUM)  # of the last ten minutes
    busy_seconds: float = field(metadata=SUM)  # how long these took
    fair_runs: float = field(metadata=SUM)  # how many would be its own if runs went by weights
    queue_state: QueueState = field(metadata=ONE)
    shards: Sequence[int] = field(default=(), metadata=EVERY)  # that know it
    in_queues: Sequence[ClientInQueue] = ()  # whose sum it is

    # Its parts of what ran in the last ten minutes, 0 to 1; None: nothing ran. They are estimated from counters of ten
    # minutes each, to which workers add once a second what they have finished.

    @property
    def starts(self) -> float | None:
        """Its part of the number of runs."""
        return _part(self.runs, self.queue_state.runs)

    @property
    def time(self) -> float | None:
        """Its part of the time that they took."""
        return _part(self.busy_seconds, self.queue_state.busy_seconds)

    @property
    def fair(self) -> float | None:
        """Its weight among the clients that had work: whose jobs ran, or could start now. None: it had none."""
        return _part(self.fair_runs, self.queue_state.runs) if self.fair_runs else None

    @property
    def in_force(self) -> Limits:
        """The limits that hold for it: its own come first."""
        return {**self.queue_state.default, **self.limits}

    @property
    def is_known(self) -> bool:
        """Whether it has jobs or limits in this queue, or ran jobs lately."""
        return bool(self.queued or self.scheduled or self.running or self.runs or self.limits or self.pause)

    @property
    def reason(self) -> str:
        """Why its jobs do not start, in the language of the user. "" if they do, or if it has none and may."""
        reasons = [holds_text(self.holds)]
        if self.queued and self.queue_state.holds:
            reasons.append(_("the queue: %(reason)s") % {"reason": holds_text(self.queue_state.holds)})
        blocked = _("waits until it may start a job") if self.is_blocked else ""
        return "; ".join(filter(None, reasons)) or blocked

    @property
    def reasons(self) -> list[str]:
        """Queues in which its jobs do not start, and why."""
        return [f"{each.queue}: {each.reason}" for each in self.in_queues if each.reason]


def _part(one: float, of_all: float) -> float | None:
    return min(1.0, one / of_all) if of_all else None


class QueueClients:
    """Clients of one queue, by their names in Redis: all, read in two steps, or some, read by one script."""

    counts: Sequence[int] = ()  # of the lanes, and then of the delayed
    all_weights: float | None = None  # of all clients that had work; None: they are all here

    def __init__(self, queue: str, shard: int | None, now_ms: int, replies: Sequence[Any]) -> None:
        lanes, number, delayed, *hashes, next_starts, paused, runs, old_runs, us, old_us = replies
        self.queue, self.shard, self.now_ms = queue, shard, now_ms
        #: False: a key has more entries than were read.
        self.is_complete = (
            number <= MAX_ENTRIES and len(delayed) < MAX_ENTRIES and all(cursor == b"0" for cursor, _ in hashes)
        )
        # "band:client", and since when these wait, ms; those whose first jobs wait longest come first
        self._lanes, self._waiting_since = lanes[::2], lanes[1::2]
        self.delayed: Sequence[bytes] = delayed  # the clients with jobs that wait for their time
        # See the keys of these names.
        self._limits, self._sources, self._running_counts, self._blocked = (as_dict(entries) for _, entries in hashes)
        self._next_starts, self._paused = as_dict(next_starts), paused or b""
        # The counters of the present ten minutes, and of the last ones, of which a part counts.
        self._runs, self._old_runs, self._us, self._old_us = map(as_dict, (runs, old_runs, us, old_us))
        self._old_part = 1 - now_ms % _SLICE_MS / _SLICE_MS

    @staticmethod
    def commands(keys: QueueKeys, now_ms: int) -> list[Command]:
        """The commands of the first step. Each is short."""
        slices = [str(now_ms // _SLICE_MS - back).encode() for back in (0, 1)]
        hashes = keys.limits, keys.limit_sources, keys.running_counts, keys.blocked
        return [
            ("ZRANGE", keys.lanes, 0, MAX_ENTRIES - 1, "WITHSCORES"),
            ("ZCARD", keys.lanes),
            ("ZRANGE", keys.scheduled_by_client, 0, MAX_ENTRIES - 1),
            *(("HSCAN", key, 0, "COUNT", MAX_ENTRIES) for key in hashes),
            ("ZRANGE", keys.next_starts, 0, MAX_ENTRIES - 1, "WITHSCORES"),
            ("HGET", keys.paused, "queue"),
            *(("HGETALL", keys.client_runs + slice_name) for slice_name in slices),
            *(("ZRANGE", keys.client_time + slice_name, 0, MAX_ENTRIES - 1, "WITHSCORES") for slice_name in slices),
        ]

    def count_commands(self, keys: QueueKeys) -> list[Command]:
        """The commands of the second step. Their replies are `counts`."""
        lanes = [("LLEN", keys.lane + lane) for lane in self._lanes]
        return [*lanes, *(("ZCARD", keys.scheduled_by_client + b":" + client) for client in self.delayed)]

    @classmethod
    def read_some(cls, queue: str, shard: int | None, reply: Sequence[Any]) -> QueueClients:
        """Read the reply of the script `client_states`."""
        (now_ms, all_weights, counts), replies = reply
        found = cls(queue, shard, now_ms, replies)
        found.counts, found.all_weights = counts, float(all_weights)
        return found

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
        counts = zip(self.delayed, self.counts[len(self._lanes) :], strict=True)
        return {client: number for client, number in counts if number}

    @cached_property
    def running(self) -> Mapping[bytes, int]:
        """Running jobs, which are counted while there are limits."""
        counts = self._running_counts.items()
        return {name.partition(b":")[2]: int(number) for name, number in counts if b":" in name}

    @cached_property
    def since(self) -> Mapping[bytes, float]:
        """Since when the first job in the lanes of each client waits, ms."""
        # From the end: the lane that comes first wins.
        return dict(zip(reversed(self._lane_clients), map(float, reversed(self._waiting_since)), strict=True))

    @cached_property
    def runs(self) -> Mapping[bytes, float]:
        """Runs of the last ten minutes, estimated; of all clients under the name of that total."""
        return self._sum(self._runs, self._old_runs)

    @cached_property
    def us(self) -> Mapping[bytes, float]:
        """How long these took."""
        return self._sum(self._us, self._old_us)

    def _sum(self, present: Mapping[bytes, bytes], last: Mapping[bytes, bytes]) -> Mapping[bytes, float]:
        sums = {client: float(number) for client, number in present.items()}
        for client, number in last.items():
            sums[client] = sums.get(client, 0.0) + self._old_part * float(number)
        return sums

    @cached_property
    def fair_runs(self) -> Mapping[bytes, float]:
        """Of all runs, how many would have been those of each client if they went by weights."""
        parts = {**dict.fromkeys(self._had_work - self._able, self._old_part), **dict.fromkeys(self._able, 1.0)}
        if b"weights" in self._limits:
            parts = {client: part * self._weight(client) for client, part in parts.items()}
        weights = sum(parts.values()) if self.all_weights is None else self.all_weights
        runs_of_one = self.state.runs / weights if weights else 0.0
        return {client: part * runs_of_one for client, part in parts.items()}

    # -- all that is known

    @cached_property
    def state(self) -> QueueState:
        """What its clients have in common."""
        limits = self._limits_of(b"queue")
        return QueueState(
            limits=limits,
            default=self._limits_of(b"clients"),
            running=int(self._running_counts.get(b"queue", 0)),
            holds=self._holds(b"queue", self._paused, limits),
            runs=self.runs.get(_ALL_RUNS, 0.0),
            busy_seconds=self.runs.get(_ALL_TIME, 0.0) / 1_000_000,
        )

    def client(self, name: bytes) -> ClientInQueue:
        """One of them."""
        member, pause = b"client:" + name, self._limits.get(b"paused:" + name, b"")
        own, running, queued = self._limits_of(member), self.running.get(name, 0), self.queued.get(name, 0)
        found = ClientInQueue(
            client=name.decode(errors="replace"),
            queue=self.queue,
            queued=queued,
            oldest_seconds=max(0.0, (self.now_ms - self.since[name]) / 1000) if queued else None,
            scheduled=self.scheduled.get(name, 0),
            running=running if running or own or pause or self.state.default or self.state.limits else None,
            limits=own,
            pause=_read_pause(pause.decode()),
            is_blocked=name in self._blocked,
            holds=self._holds(member, pause, {**self.state.default, **own}) if self._limits else NO_HOLDS,
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
        parts = self.queued, self.scheduled, self.running, self._had_work, self.paused_clients, self.limited_clients
        return set[bytes]().union(*parts)

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
        return [lane.partition(b":")[2] for lane in self._lanes]

    @cached_property
    def _had_work(self) -> set[bytes]:
        """Who ran jobs in these counters, or may start one."""
        return (self._runs.keys() | self._old_runs.keys() | self._able) - {_ALL_TIME, _ALL_RUNS}

    @cached_property
    def _able(self) -> set[bytes]:
        """Who ran jobs in the present ten minutes, or may start one."""
        return (self._runs.keys() | (set(self._lane_clients) - self._blocked.keys())) - {_ALL_TIME, _ALL_RUNS}

    def _named(self, prefix: bytes) -> Iterator[bytes]:
        return (name[len(prefix) :] for name in self._limits if name.startswith(prefix))

    def _weight(self, client: bytes) -> float:
        """Its own weight, or that of each client."""
        for name in (b"client:" + client, b"clients"):
            if weight := limit_values(self._limits.get(name, b"").decode()).get("weight"):
                return float(weight)
        return 1.0

    def _limits_of(self, name: bytes) -> Limits:
        if name not in self._limits:
            return {}
        return read_limits(self._limits[name].decode(), self._sources.get(b"run:" + name, b"").decode())

    def _holds(self, member: bytes, pause: bytes, limits: Limits) -> Holds:
        most = limits["max_running"].value if "max_running" in limits else None
        at_limit = most if most is not None and int(self._running_counts.get(member, 0)) >= most else None
        starts_at = self._next_starts.get(member, b"")
        return read_holds(self.now_ms, pause, at_limit, int(float(starts_at)) if starts_at else b"")


def _read_pause(text: str) -> ClientPause | None:
    """A stored pause; "" is none."""
    ms, _, by = text.partition(" ")
    return ClientPause(since=clock_moment(int(ms)), by=by) if ms else None


@dataclass(kw_only=True)
class AllClients:
    """All clients over all queues at one moment: searched, sorted, and added up."""

    queues: Sequence[QueueClients] = field(metadata=JOINED)
    now_ms: int = field(metadata=MOST)
    read_at: float = field(default_factory=time.monotonic, metadata=LEAST)
    kept_seconds: float = field(default=0.0, metadata=MOST)

    @property
    def age_seconds(self) -> float:
        """Since they were counted; 0.0 if they are not kept."""
        return time.monotonic() - self.read_at if self.kept_seconds else 0.0

    @property
    def known(self) -> int:
        """How many there are."""
        return len(self._names)

    @property
    def is_complete(self) -> bool:
        """False: a queue has more clients than are read. Those whose first jobs wait longest are counted."""
        return all(queue.is_complete for queue in self.queues)

    def matching(
        self, *, sort: str = "queued", is_reversed: bool = False, search: str = "", state: str = ""
    ) -> list[bytes]:
        """The names of the clients that contain `search`, in any case, and that are in a state of STATES."""
        text = search.casefold()
        names = [client for client, name in self._names.items() if text in name] if text else list(self._names)
        if state in STATES:
            names = [client for client in names if client in self._states[state]]
        if sort == "name":
            return names[::-1] if is_reversed else names
        if sort == "oldest":
            since = self._oldest
            waiting = sorted((name for name in names if name in since), key=since.__getitem__, reverse=is_reversed)
            return [*waiting, *(name for name in names if name not in since)]
        sums = self._sums(_COLUMNS.get(sort, sort if sort in SORTS else "queued"))
        return sorted(names, key=lambda client: sums.get(client, 0), reverse=not is_reversed)

    def client(self, name: bytes) -> ClientInQueue:
        """One of them, over all queues."""
        in_queues = [queue.client(name) for queue in self.queues if name in queue.clients]
        return replace(merge(in_queues), queue="", queue_state=self._state, in_queues=in_queues)

    # -- inside

    @cached_property
    def _names(self) -> Mapping[bytes, str]:
        """What is searched, in the order of names."""
        clients = set[bytes]().union(*(queue.clients for queue in self.queues))
        names = [(client.decode(errors="replace").casefold(), client) for client in clients]
        return {client: name for name, client in sorted(names)}

    @cached_property
    def _states(self) -> Mapping[str, set[bytes]]:
        return {
            "waiting": {client for queue in self.queues for part in (queue.queued, queue.scheduled) for client in part},
            "paused": {client for queue in self.queues for client in queue.paused_clients},
            "limited": {client for queue in self.queues for client in queue.limited_clients},
        }

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
    def _state(self) -> QueueState:
        return merge(queue.state for queue in self.queues)


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
        return [queue.client(client.encode()) for queue in self._read([(name, 0, [client]) for name in names])]

    def in_queue(self, queue: str, clients: Collection[str]) -> tuple[QueueState, list[ClientInQueue]]:
        """Some clients of a queue, and the queue: one round trip."""
        names = list(clients)
        parts = [names[start : start + STATES_AT_ONCE] for start in range(0, len(names), STATES_AT_ONCE)]
        of_queue, *found = self._read([(queue, 0, []), *((queue, -1, part) for part in parts)])
        for each in found:
            each.all_weights = of_queue.all_weights  # takes as long as 50 clients, and is the same
        return of_queue.state, [each.client(name) for each in found for name in each.delayed]

    def limits(self, queue: str) -> QueueState:
        """A queue with the clients that have limits, are paused, run jobs while there are limits, or are blocked."""
        state, clients = self.in_queue(queue, sorted(self.limited(queue)))
        return replace(state, clients={client.client: client for client in clients})

    def limited(self, queue: str) -> set[str]:
        """Their names."""
        keys = self._keys.of(queue)
        hashes = keys.limits, keys.running_counts, keys.blocked
        limits, counts, blocked = self._redis.execute([("HKEYS", key) for key in hashes], resend=True)
        members = [member.partition(b":") for member in (*limits, *counts)]
        return {name.decode() for name in (*(name for _, colon, name in members if colon), *blocked)}

    def _read(self, wanted: Sequence[tuple[str, int, Sequence[str]]]) -> list[QueueClients]:
        """Some clients of queues, with the weights of all (0) or without (-1), in one round trip."""
        script = SCRIPTS["client_states"]
        calls = [script.call(self._keys.of(queue), (weights, 0, *clients)) for queue, weights, clients in wanted]
        replies = self._redis.execute(calls, resend=True)
        return [
            QueueClients.read_some(queue, self._shard, reply)
            for (queue, *_), reply in zip(wanted, replies, strict=True)
        ]

    def busiest(self, queue: str) -> list[ClientInQueue]:
        """Those of a queue with most waiting jobs, and of the others those that ran longest, without fair shares."""
        call = SCRIPTS["client_states"].call(self._keys.of(queue), (MAX_LANES, MOST_BUSY))
        found = QueueClients.read_some(queue, self._shard, self._redis.execute_one(call, resend=True))
        return most_queued(map(found.client, found.delayed))

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
        names, now_ms = read_queue_names(known) if queues is None else list(queues), clock_ms(now)
        replies = ask(self._redis, {name: QueueClients.commands(self._keys.of(name), now_ms) for name in names})
        of_queues = [QueueClients(name, self._shard, now_ms, reply) for name, reply in replies.items()]
        counts = ask(self._redis, {of: of.count_commands(self._keys.of(of.queue)) for of in of_queues})
        for of_queue, numbers in counts.items():
            of_queue.counts = numbers
        found = AllClients(queues=of_queues, now_ms=now_ms)
        if sum(len(queue.clients) for queue in found.queues) > FEW:
            found.kept_seconds = max(KEPT_SECONDS, KEPT_TIMES * (time.monotonic() - started))
        return found


def most_queued(clients: Iterable[ClientInQueue]) -> list[ClientInQueue]:
    """Those with most waiting jobs, and then those that ran longest."""
    return sorted(clients, key=lambda client: (client.queued, client.busy_seconds), reverse=True)[:MOST_BUSY]
