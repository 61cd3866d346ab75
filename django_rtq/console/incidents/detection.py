"""Finds all incidents in the data of the overview. Reads only the outbox and schedules itself (D94)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from django_rtq.console.incident_options import KINDS, incident_options
from django_rtq.console.incidents import queues, schedules, server, workers
from django_rtq.console.incidents.incident import DETECTORS, Incident, Seen, Severity
from django_rtq.console.merging import merge_by
from django_rtq.console.reading.overview import Overview
from django_rtq.console.reading.readers import Readers
from django_rtq.databases.outbox import OutboxLag, outbox_lag

__all__ = ["queues", "schedules", "server", "workers"]  # which declare the detectors

MAX_OF_DETECTOR = 50  # incidents of one detector, the worst
OF_A_HOST = ("host_without_worker", "worker_lost", "worker_silent")
_ORDER = list(Severity)  # the worst first


def read_incidents(
    readers: Readers, overview: Overview | None = None, *, oldest_seconds: float | None = None
) -> list[Incident]:
    """All incidents at this moment, in three round trips to Redis, or one with an overview. Raises BrokerError."""
    overview = readers.overview.read() if overview is None else overview
    return find_incidents(seen_in(readers.place, overview, outbox_lag(readers.place), oldest_seconds))


def seen_in(place: str, overview: Overview, lag: OutboxLag | None, oldest_seconds: float | None = None) -> Seen:
    """What detectors look at in a Redis: its schedules, too, in one round trip. Raises BrokerError."""
    known = schedules.known_schedules(place)
    return Seen(place=place, overview=overview, lag=lag, schedules=known, oldest_seconds=oldest_seconds)


def find_incidents(seen: Seen) -> list[Incident]:
    """All incidents, the worst first."""
    return reported(chain.from_iterable(islice(DETECTORS[kind].find(seen), MAX_OF_DETECTOR) for kind in KINDS))


def host_incidents(overview: Overview, host: str) -> list[Incident]:
    """What is wrong with the workers of one host."""
    seen = Seen(overview=overview, host=host)
    return [incident for kind in OF_A_HOST for incident in DETECTORS[kind].find(seen) if incident.host == host]


def of_shards(found: Mapping[int, Sequence[Incident]]) -> list[Incident]:
    """Those of several shards, the worst first: of one kind and subject they are one."""
    tagged = (replace(incident, shards=(number,)) for number, of_shard in found.items() for incident in of_shard)
    return reported(merge_by("id", tagged))


def reported(incidents: Iterable[Incident]) -> list[Incident]:
    """Those that RTQ["INCIDENTS"] does not ignore, the worst first."""
    options = incident_options()
    found = [
        replace(incident, severity=Severity.CRITICAL) if incident.kind in options.critical else incident
        for incident in incidents
        if incident.kind not in options.ignore
    ]
    return sorted(found, key=lambda incident: _ORDER.index(incident.severity))
