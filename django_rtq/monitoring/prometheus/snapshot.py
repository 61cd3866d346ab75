"""Reads all numbers that the metrics are made of, in three round trips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django_rtq.console.incidents import Incident, read_incidents
from django_rtq.console.inspector.details import QueueDetails, WorkerDetails
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.metrics.reader import TaskCounts, add_counters

_UNTIL = ("minute", "hour")  # entries of the totals that are no counters


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNumbers:
    """The numbers of one queue."""

    details: QueueDetails
    counters: Mapping[str, int]  # enqueued, succeeded, … -> since the first scrape
    tasks: Mapping[str, TaskCounts]  # since the first scrape


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The numbers of one scrape."""

    queues: Sequence[QueueNumbers] = field(default_factory=list)
    workers: Sequence[WorkerDetails] = field(default_factory=list)
    incidents: Sequence[Incident] = field(default_factory=list)
    workflows: Mapping[str, int] = field(default_factory=dict)  # state -> how many
    blocked_seconds: float = 0.0  # for how long the one that is blocked longest has been


def read_snapshot() -> Snapshot:
    """Read all queues and workers, and find what is wrong. Raises BrokerError.

    It adds past counters to the totals in Redis, so that later scrapes, also of other processes, go on from there.
    """
    overview = get_inspector().overview.read(with_totals=True)
    return Snapshot(
        queues=[_queue_numbers(row.details, row.totals) for row in overview.queues],
        workers=overview.workers,
        incidents=read_incidents(overview),
        workflows=overview.workflows.counts,
        blocked_seconds=max(
            ((overview.now - flow.since).total_seconds() for flow in overview.workflows.blocked), default=0.0
        ),
    )


def _queue_numbers(details: QueueDetails, totals: Sequence[list[Any]]) -> QueueNumbers:
    counts: dict[str, TaskCounts] = {}
    for part in totals:
        add_counters(counts, part)
    counters = counts.pop("", TaskCounts()).outcomes
    for until in _UNTIL:
        counters.pop(until, None)
    return QueueNumbers(details=details, counters=counters, tasks=counts)
