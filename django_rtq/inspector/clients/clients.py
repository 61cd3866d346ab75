"""Clients in all queues: their jobs, their limits, why they wait, and who used the workers lately."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django_rtq.broker.broker import Broker
from django_rtq.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.inspector.clients.client_states import (
    ClientInQueue,
    QueueState,
    Shares,
    read_client_states,
    read_queue_state,
)
from django_rtq.inspector.metrics import ClientDetails, MetricsReader
from django_rtq.inspector.queues import QueueReader


@dataclass(slots=True, kw_only=True)
class ClientSummary:
    """One client over all queues."""

    client: str
    queued: int = 0
    oldest_seconds: float | None = None  # how long its first job has been waiting; None: no job waits
    done_lately: int = 0  # runs in the last hour
    busy_seconds: float = 0.0  # how long these took
    share: float = 0.0  # of the time of all runs of the last hour, 0 to 1
    shares: Shares = field(default_factory=Shares)  # of what ran in the last ten minutes
    in_queues: list[ClientInQueue] = field(default_factory=list)  # those where there is anything of it

    def add(self, found: ClientDetails) -> None:
        """Add what was found in one queue."""
        waits = [seconds for seconds in (self.oldest_seconds, found.oldest_seconds) if seconds is not None]
        self.oldest_seconds = max(waits, default=None)
        self.queued += found.queued
        self.done_lately += found.done_lately
        self.busy_seconds += found.busy_seconds

    @property
    def is_paused(self) -> bool:
        """Whether it is paused in at least one queue."""
        return any(each.pause for each in self.in_queues)

    @property
    def is_limited(self) -> bool:
        """Whether it has limits of its own."""
        return any(each.own for each in self.in_queues)

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Queues in which its jobs do not start, and why."""
        return [(each.queue, each.reason) for each in self.in_queues if each.reason]


class ClientReader:
    """Reads clients. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._queues, self._metrics = QueueReader(broker), MetricsReader(broker)
        self._redis, self._keys = broker.redis, broker.keys

    def get(self, client: str, queues: Iterable[str] | None = None) -> list[ClientInQueue]:
        """A client in these queues; in all queues, if none is named."""
        names = self._queues.names() if queues is None else list(queues)
        return self._read({name: [client] for name in names})[0]

    def in_queue(self, queue: str, clients: Collection[str]) -> tuple[QueueState, list[ClientInQueue]]:
        """Some clients of a queue, and the queue: one round trip."""
        found, states = self._read({queue: clients})
        return states[queue], found

    def busiest(self, limit: int = 100) -> list[ClientSummary]:
        """The clients with most waiting jobs, those that did most lately, and those that are paused or have limits.

        Three round trips. Of each queue the lanes are read whose first jobs wait longest, 1,000 at most.
        """
        names = self._queues.names()
        commands = [self._metrics.clients_command(name, limit) for name in names]
        commands += [("HKEYS", self._keys.of(name).limits) for name in names]
        replies = self._redis.execute(commands, resend=True)
        served, fields = replies[: len(names)], replies[len(names) :]
        found: dict[str, ClientSummary] = {}
        seen: dict[str, dict[str, None]] = {}  # queue -> clients
        paused: set[str] = set()
        for name, reply, of_limits in zip(names, served, fields, strict=True):
            for each in self._metrics.read_clients(reply, limit, by="queued").clients:
                found.setdefault(each.client, ClientSummary(client=each.client)).add(each)
                seen.setdefault(name, {})[each.client] = None
            for kind, client in _limited(of_limits):
                found.setdefault(client, ClientSummary(client=client))
                seen.setdefault(name, {})[client] = None
                paused |= {client} if kind == "paused" else set()
        _share_out(found.values(), sum(reply[2] for reply in served))
        in_order = sorted(
            found.values(), key=lambda one: (one.client not in paused, -one.queued, -one.share, one.client)
        )[:limit]
        shown = {one.client: one for one in in_order}
        self._add_states(shown, {name: [one for one in seen.get(name, ()) if one in shown] for name in names})
        return in_order

    # -- inside

    def _add_states(self, shown: Mapping[str, ClientSummary], wanted: Mapping[str, Collection[str]]) -> None:
        found, states = self._read(wanted)
        for each in found:
            if each.is_known:
                shown[each.client].in_queues.append(each)
        for one in shown.values():
            one.shares = _shares_of_all(one.in_queues, states.values())

    def _read(self, wanted: Mapping[str, Collection[str]]) -> tuple[list[ClientInQueue], dict[str, QueueState]]:
        """Clients by queue, in one round trip."""
        asked = [(queue, part) for queue, clients in wanted.items() for part in _parts(list(clients))]
        calls = [SCRIPTS["client_states"].call(self._keys.of(queue), part) for queue, part in asked]
        found: list[ClientInQueue] = []
        states: dict[str, QueueState] = {}
        for (queue, part), reply in zip(asked, self._redis.execute(calls, resend=True), strict=True):
            states[queue] = read_queue_state(reply)
            found += read_client_states(queue, part, reply)
        return found, states


def _parts(clients: Sequence[str]) -> Iterator[Sequence[str]]:
    """Of no clients one empty part: the queue is read, too."""
    for start in range(0, max(1, len(clients)), AT_ONCE):
        yield clients[start : start + AT_ONCE]


def _limited(fields: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Who is paused or has limits, by the fields of the key `limits`."""
    for text in fields:
        kind, separator, client = text.decode().partition(":")
        if separator:
            yield kind, client


def _share_out(found: Iterable[ClientSummary], total_us: int) -> None:
    for one in found:
        one.share = min(1.0, one.busy_seconds * 1_000_000 / total_us) if total_us else 0.0


def _shares_of_all(found: Iterable[ClientInQueue], queues: Collection[QueueState]) -> Shares:
    """A client's part of the runs of all queues. Its fair part is that of each queue, as far as that queue ran jobs."""
    found = list(found)

    def part(name: str, of_queue: str) -> float | None:
        total = sum(getattr(queue, of_queue) for queue in queues)
        runs = (getattr(each.queue_state, of_queue) * (getattr(each.shares, name) or 0) for each in found)
        return min(1.0, sum(runs) / total) if total else None

    return Shares(starts=part("starts", "runs"), time=part("time", "busy_seconds"), fair=part("fair", "runs"))
