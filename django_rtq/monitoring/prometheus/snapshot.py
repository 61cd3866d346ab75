"""Reads all numbers that the metrics are made of, in two round trips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.client import as_dict
from django_rtq.broker.redis.commands import Command
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.details import QueueDetails
from django_rtq.inspector.queues import read_queue_details

_OF_A_QUEUE = ("queue_overview", "update_totals", "list_running")
_UNTIL = ("minute", "hour")  # entries of the totals that are no counters


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNumbers:
    """The numbers of one queue."""

    details: QueueDetails
    counters: Mapping[str, int]  # enqueued, succeeded, … -> since the first scrape
    tasks: Mapping[str, Mapping[str, int]]  # task -> done, failed, …, r<bucket>, w<bucket> -> since the first scrape


@dataclass(slots=True, kw_only=True)
class WorkerNumbers:
    """One worker process."""

    host: str = ""
    queues: Sequence[str] = ()
    slots: int = 1
    held: int = 0  # claimed jobs
    memory_bytes: int = 0
    is_quiet: bool = False
    is_lost: bool = False  # its lease has expired


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The numbers of one scrape."""

    queues: Sequence[QueueNumbers] = field(default_factory=list)
    workers: Mapping[str, WorkerNumbers] = field(default_factory=dict)


def read_snapshot(broker: Broker) -> Snapshot:
    """Read all queues and workers. Raises BrokerError.

    It adds past counters to the totals in Redis, so that later scrapes, also of other processes, go on from there.
    """
    keys = broker.keys
    queues, workers = broker.redis.execute(
        [("SMEMBERS", keys.queues), ("ZRANGE", keys.workers, 0, -1)], resend=True
    )  # fmt: skip
    names, known = sorted(name.decode() for name in queues), [name.decode() for name in workers]
    commands: list[Command] = [
        SCRIPTS[script].call(keys.of(name), (0, 0) if script == "list_running" else ())
        for name in names
        for script in _OF_A_QUEUE
    ]
    replies = broker.redis.execute([*commands, *(("HGETALL", keys.worker(name)) for name in known)], resend=True)
    of_queues = [replies[start : start + len(_OF_A_QUEUE)] for start in range(0, len(commands), len(_OF_A_QUEUE))]
    infos = {name: as_dict(reply) for name, reply in zip(known, replies[len(commands) :], strict=True)}
    return Snapshot(
        queues=[
            _queue_numbers(name, overview, totals) for name, (overview, totals, _) in zip(names, of_queues, strict=True)
        ],
        workers=_workers([running for _, _, running in of_queues], infos),
    )


def _queue_numbers(name: str, overview: list[Any], totals: Sequence[list[bytes]]) -> QueueNumbers:
    counters: dict[str, int] = {}
    tasks: dict[str, dict[str, int]] = {}
    for part in totals:
        for field_name, number in as_dict(part).items():
            kind, is_of_task, task = field_name.decode(errors="replace").partition(" ")
            sums = tasks.setdefault(task, {}) if is_of_task else counters
            sums[kind] = sums.get(kind, 0) + int(number)
    for each in _UNTIL:
        counters.pop(each, None)
    return QueueNumbers(details=read_queue_details(name, overview), counters=counters, tasks=tasks)


def _workers(running: Sequence[list[Any]], infos: Mapping[str, Mapping[bytes, bytes]]) -> dict[str, WorkerNumbers]:
    """The workers that hold a lease in some queue, with what they told about themselves."""
    workers: dict[str, WorkerNumbers] = {}
    for _, *entries in running:
        for name, lease_ms, held, *_ in entries:
            worker = workers.setdefault(name.decode(), WorkerNumbers())
            worker.held += held
            worker.is_lost = worker.is_lost or float(lease_ms) < 0
    for name, worker in workers.items():
        info = infos.get(name, {})
        worker.host = info.get(b"host", b"").decode(errors="replace")
        worker.queues = info.get(b"queues", b"").decode().split(",")
        worker.slots = int(info.get(b"slots", 1))
        worker.memory_bytes = int(info.get(b"memory", 0))
        worker.is_quiet = info.get(b"quiet") == b"1"
    return workers
