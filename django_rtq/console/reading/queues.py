"""Which queues there are, and how many jobs they hold. Takes the same time however long the queues are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

from django_rtq.console.reading.details import (
    ClientPause,
    QueueDetails,
    TaskPause,
    WorkerDetails,
    ZeroLimit,
    read_holds,
)
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import read_queue_names
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.limits.limit_kinds import limit_values

T = TypeVar("T")


def ask(redis: RedisClient, wanted: Mapping[T, Sequence[Command]]) -> dict[T, list[Any]]:
    """The replies to the commands about each of these, in one round trip. Raises BrokerError."""
    return redis.run(asking(wanted))


def asking(wanted: Mapping[T, Sequence[Command]]) -> Steps[dict[T, list[Any]]]:
    """The same as a part of an operation."""
    commands = [*chain.from_iterable(wanted.values())]
    replies = iter(checked((yield commands)) if commands else ())
    return {each: [*islice(replies, len(about))] for each, about in wanted.items()}


def together(*parts: Steps[Any]) -> Steps[list[Any]]:
    """What each of several parts returns, whose commands share round trips."""
    ends: list[Any] = [None for _ in parts]
    replies: dict[int, Any] = dict.fromkeys(range(len(parts)))
    while replies:
        asked: dict[int, Sequence[Command]] = {}
        for number, reply in replies.items():
            try:
                asked[number] = parts[number].send(reply)
            except StopIteration as end:
                ends[number] = end.value
        each = iter((yield [*chain.from_iterable(asked.values())]) if asked else ())
        replies = {number: [*islice(each, len(commands))] for number, commands in asked.items()}
    return ends


class QueueReader:
    """Reads queues. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._redis, self._keys = broker.redis, broker.keys

    def names(self) -> list[str]:
        """All queues that were ever used, sorted."""
        return read_queue_names(self._redis.execute_one(("SMEMBERS", self._keys.queues), resend=True))

    def details(self, names: Iterable[str] | None = None) -> list[QueueDetails]:
        """How many jobs these queues hold; all queues, if none is named."""
        return self._redis.run(self.details_of(self.names() if names is None else names))

    def details_of(self, names: Iterable[str]) -> Steps[list[QueueDetails]]:
        """The same as a part of an operation."""
        replies = yield from asking({name: [SCRIPTS["queue_overview"].call(self._keys.of(name), ())] for name in names})
        return [read_queue_details(name, reply) for name, (reply,) in replies.items()]

    def get(self, name: str) -> QueueDetails:
        """How many jobs one queue holds; all zero for a queue that was never used."""
        return self.details([name])[0]


def read_queue_details(name: str, reply: list[Any]) -> QueueDetails:
    """Read the reply of the script `queue_overview`."""
    now_ms, live, scheduled, retrying, dead, running, lanes, oldest, paused, finished, *seen = reply
    contact, promoted, behind, tasks, lost, clients, limits, starts, zeros = seen
    paused_ms, _, paused_by = paused.partition(b" ")
    lost_number, _, lost_since = lost.partition(b" ")
    return QueueDetails(
        name=name,
        paused=paused != b"",
        queued=max(0, live - scheduled - retrying - dead - running),
        scheduled=scheduled,
        retrying=retrying,
        running=running,
        dead=dead,
        finished=finished,
        oldest_seconds=_seconds_since(oldest, now_ms),
        clients=lanes,
        contact_seconds=_seconds_since(contact, now_ms),
        scheduler_seconds=_seconds_since(promoted, now_ms),
        clock_behind_seconds=behind / 1000,
        paused_seconds=_seconds_since(paused_ms, now_ms),
        paused_by=paused_by.decode(errors="replace"),
        paused_tasks=tuple(sorted(_task_pauses(tasks, now_ms), key=lambda pause: pause.task)),
        lost=int(lost_number or 0),
        lost_seconds=_seconds_since(lost_since, now_ms),
        paused_clients=tuple(_client_pauses(clients, now_ms)),
        is_at_limit=running >= float(limit_values(limits.decode()).get("max_running", "none").replace("none", "inf")),
        is_at_rate=starts != b"" and float(starts) > now_ms,
        zero_limits=tuple(
            ZeroLimit(field.decode(errors="replace"), lanes, "max_running" in limit_values(text.decode()))
            for field, lanes, text in zeros
        ),
    )


def _client_pauses(found: Sequence[Any], now_ms: int) -> Iterator[ClientPause]:
    for client, pause, held in found:
        holds = read_holds(now_ms, pause)
        yield ClientPause(
            client=client.decode(errors="replace"), seconds=holds.paused_seconds or 0.0, by=holds.paused_by, held=held
        )


def _task_pauses(found: Sequence[Any], now_ms: int) -> Iterator[TaskPause]:
    for task, entry, held in found:
        holds = read_holds(now_ms, entry.partition(b" ")[2])  # "<number> <ms> <who>", or "<number>": it was resumed
        yield TaskPause(task=task.decode(errors="replace"), seconds=holds.paused_seconds, by=holds.paused_by, held=held)


def quiet_queues(workers: Iterable[WorkerDetails]) -> list[str]:
    """The queues all of whose living workers are quiet, sorted."""
    served, claimed = set[str](), set[str]()
    for worker in workers:
        if not worker.is_lost:
            served.update(worker.queues)
            if not worker.is_quiet:
                claimed.update(worker.queues)
    return sorted(served - claimed)


def _seconds_since(then_ms: bytes, now_ms: int) -> float | None:
    return max(0.0, (now_ms - float(then_ms)) / 1000) if then_ms else None


def unserved(queues: Iterable[str], workers: Iterable[WorkerDetails]) -> list[str]:
    """Those of the queues that none of the living workers serves. Quiet ones do: they are there."""
    served = {name for worker in workers if not worker.is_lost for name in worker.queues}
    return [name for name in queues if name not in served]


def packets(weights: Mapping[T, int], most: int) -> Iterator[list[T]]:
    """What is read of queues, that of a round trip together: it weighs no more than `most`, or is alone."""
    packet: list[T] = []
    weight = 0
    for each, its_weight in weights.items():
        if packet and weight + its_weight > most:
            yield packet
            packet, weight = [], 0
        packet.append(each)
        weight += its_weight
    if packet:
        yield packet
