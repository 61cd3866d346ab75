"""Finds all incidents in the data of the overview. Reads nothing itself but the lag of the outbox (D94)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice

from django_rtq.console.incident_options import incident_options
from django_rtq.console.incidents.incident import Action, Incident, Severity
from django_rtq.console.incidents.queues import (
    blocked_workflows,
    busy_clients,
    failing_tasks,
    long_waits,
    lost_places,
    missing_schedulers,
    new_dead_letters,
    paused_clients,
    paused_queues,
    paused_tasks,
    stuck_workflows,
    zero_limits,
)
from django_rtq.console.incidents.schedules import invalid_schedules, known_schedules, missed_schedules
from django_rtq.console.incidents.workers import (
    crash_loops,
    hung_jobs,
    lost_workers,
    missing_workers,
    quiet_workers,
    several_projects,
    silent_workers,
    unknown_tasks,
)
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.overview import Overview
from django_rtq.console.schedule_status import KnownSchedules
from django_rtq.core.broker.server_info import problem_values
from django_rtq.core.jobs.job import moment
from django_rtq.databases.outbox import OutboxLag, outbox_lag

MAX_OF_DETECTOR = 50  # incidents of one detector, the worst
OUTBOX_SECONDS = 60.0  # jobs that are in the outbox for less are not reported
CLOCK_SECONDS = 1.0  # a clock that is behind by less is not reported
_CRITICAL = {"evicts", "full", "log_failed", "snapshot_failed", "replica"}  # of the warnings of the server

_ORDER = list(Severity)  # the worst first

_DETECTORS = (
    missing_workers,
    quiet_workers,
    lost_workers,
    crash_loops,
    unknown_tasks,
    several_projects,
    failing_tasks,
    new_dead_letters,
    hung_jobs,
    silent_workers,
    missing_schedulers,
    lost_places,
    zero_limits,
    busy_clients,
    paused_queues,
    paused_tasks,
    paused_clients,
    blocked_workflows,
    stuck_workflows,
)


def read_incidents() -> list[Incident]:
    """All incidents at this moment, in three round trips to Redis. Raises BrokerError."""
    return find_incidents(get_inspector().overview.read(), outbox_lag(), known_schedules())


def find_incidents(
    overview: Overview,
    lag: OutboxLag | None = None,
    schedules: KnownSchedules | None = None,
    *,
    oldest_seconds: float | None = None,
) -> list[Incident]:
    """All incidents, the worst first. `oldest_seconds` replaces that of the settings."""
    incidents: list[Incident] = []
    for of_detector in (*(detect(overview) for detect in _DETECTORS), long_waits(overview, oldest_seconds)):
        incidents += islice(of_detector, MAX_OF_DETECTOR)
    incidents += [
        *_server(overview),
        *_clock(overview),
        *_data_loss(overview),
        *_outbox(overview, lag),
    ]
    if schedules is not None:
        incidents += [*islice(missed_schedules(overview, schedules), MAX_OF_DETECTOR), *invalid_schedules(schedules)]
    return reported(incidents)


def _server(overview: Overview) -> Iterator[Incident]:
    values = problem_values(overview.server)
    for name in overview.server.warnings:
        severity = Severity.CRITICAL if name in _CRITICAL else Severity.WARNING
        yield Incident(kind=f"redis_{name}", severity=severity, values=values)


def _clock(overview: Overview) -> Iterator[Incident]:
    behind = max((row.details.clock_behind_seconds for row in overview.queues), default=0.0)
    if behind >= CLOCK_SECONDS:
        yield Incident(kind="clock_behind", severity=Severity.WARNING, values={"duration": behind})


def _data_loss(overview: Overview) -> Iterator[Incident]:
    if overview.server.data_lost_ms is not None:
        yield Incident(kind="data_lost", severity=Severity.WARNING, since=moment(overview.server.data_lost_ms))


def silent_shard(number: int, error: str, *, since: datetime | None = None, is_missing: bool = False) -> Incident:
    """That a shard does not answer. `is_missing`: for a page that shows the others."""
    also = [*(["missing_here"] if is_missing else []), *(["redis_said"] if error else [])]
    return Incident(
        kind="shard_unreachable",
        severity=Severity.CRITICAL,
        since=since,
        shard=str(number),
        values={"shard": str(number), **({"error": error[:500]} if error else {})},
        also=tuple(also),
    )


def reported(incidents: Iterable[Incident]) -> list[Incident]:
    """Those that RTQ["INCIDENTS"] does not ignore, the worst first."""
    options = incident_options()
    found = [
        replace(incident, severity=Severity.CRITICAL) if incident.kind in options.critical else incident
        for incident in incidents
        if incident.kind not in options.ignore
    ]
    return sorted(found, key=lambda incident: _ORDER.index(incident.severity))


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
            values={"count": lag.jobs, "duration": lag.oldest_seconds, "error": lag.oldest_error[:500]},
            also=("outbox_error",) if lag.oldest_error else ("outbox_stands",),
            queue=lag.oldest_queue if lag.oldest_error else "",
            actions=(Action.SHOW_QUEUE,) if lag.oldest_error else (Action.SHOW_WORKERS,),
        )
