"""Finds all incidents in the data of the overview. Reads nothing itself but the lag of the outbox."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from django_rtq.conf.config import get_config
from django_rtq.incidents.incident import Incident, Severity
from django_rtq.incidents.queues import (
    busy_clients,
    failing_tasks,
    long_waits,
    missing_schedulers,
    new_dead_letters,
    paused_queues,
    paused_tasks,
)
from django_rtq.incidents.workers import crash_loops, hung_jobs, lost_workers, missing_workers, silent_workers
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.overview import Overview
from django_rtq.inspector.server_info import problem_values
from django_rtq.transactions.outbox import OutboxLag, outbox_lag

MAX_OF_DETECTOR = 50  # incidents of one detector, the worst
OUTBOX_SECONDS = 60.0  # jobs that are in the outbox for less are not reported
CLOCK_SECONDS = 1.0  # a clock that is behind by less is not reported
_CRITICAL = {"evicts", "log_failed", "snapshot_failed", "replica"}  # of the warnings of the server

_DETECTORS = (
    missing_workers,
    lost_workers,
    crash_loops,
    failing_tasks,
    new_dead_letters,
    hung_jobs,
    silent_workers,
    missing_schedulers,
    busy_clients,
    paused_queues,
    paused_tasks,
)


def read_incidents() -> list[Incident]:
    """All incidents at this moment, in two round trips to Redis. Raises BrokerError."""
    return find_incidents(get_inspector().overview.read(), outbox_lag())


def find_incidents(
    overview: Overview, lag: OutboxLag | None = None, *, oldest_seconds: float | None = None
) -> list[Incident]:
    """All incidents, the worst first. `oldest_seconds` replaces that of the settings."""
    found: list[Incident] = []
    for incidents in (*(detect(overview) for detect in _DETECTORS), long_waits(overview, oldest_seconds)):
        found += islice(incidents, MAX_OF_DETECTOR)
    found += [*_server(overview), *_clock(overview), *_outbox(overview, lag)]
    ignored = get_config().incident_options.ignore
    return sorted((each for each in found if each.kind not in ignored), key=lambda each: not each.is_critical)


def _server(overview: Overview) -> Iterator[Incident]:
    values = problem_values(overview.server)
    for name in overview.server.warnings:
        severity = Severity.CRITICAL if name in _CRITICAL else Severity.WARNING
        yield Incident(kind=f"redis_{name}", severity=severity, values=values)


def _clock(overview: Overview) -> Iterator[Incident]:
    behind = max((row.details.clock_behind_seconds for row in overview.queues), default=0.0)
    if behind >= CLOCK_SECONDS:
        yield Incident(kind="clock_behind", severity=Severity.WARNING, values={"duration": behind})


def _outbox(overview: Overview, lag: OutboxLag | None) -> Iterator[Incident]:
    if lag is None:
        return
    if lag.error:
        yield Incident(kind="outbox_unknown", severity=Severity.CRITICAL, values={"error": lag.error[:500]})
    elif lag.oldest_seconds >= OUTBOX_SECONDS:
        yield Incident(
            kind="outbox_lag",
            severity=Severity.CRITICAL,
            since=overview.ago(lag.oldest_seconds),
            values={"count": lag.jobs, "duration": lag.oldest_seconds},
        )
